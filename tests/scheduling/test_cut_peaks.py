"""Cutting at the peak: valid orders, never a higher peak, and what no local move finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc import _core
from xla_stalloc.scheduling import Buffer, Graph, lower_bound, verify_order


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_peak_never_rises(data, random_graphs):
    graph = data.draw(random_graphs())
    order = _core.cut_peaks(graph.kernel, graph.incumbent)
    assert verify_order(graph, order) <= graph.peak(graph.incumbent)


def test_whole_chain_moves_across_the_peak():
    """A long chain that ends small costs more at each step than it started with, until it is all done."""
    steps, hungry = 40, 41
    chain = [[step - 1] if step else [] for step in range(steps + 1)]
    sizes = [10, *range(20, 20 + steps - 1), 1]
    buffers = [Buffer(size, [step, step + 1], [step]) for step, size in enumerate(sizes[:-1])]
    buffers.append(Buffer(sizes[-1], [steps, hungry + 1], [steps]))
    buffers.append(Buffer(5, [hungry, hungry + 1], [hungry]))
    graph = Graph([*chain, [0], [steps, hungry]], [*([0] * hungry), 1000, 0], buffers)
    late = graph.incumbent.copy()
    late[1 : hungry + 1] = [hungry, *range(1, steps + 1)]  # the hungry node first, the chain behind it
    assert verify_order(graph, late) == 1015
    assert verify_order(graph, _core.cut_peaks(graph.kernel, late)) == lower_bound(graph) == 1006
