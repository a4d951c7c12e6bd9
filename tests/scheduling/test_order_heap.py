"""The heap of an order, as best fit packs it: what the orders that solve keeps are chosen by."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc import _core
from xla_stalloc.packing import HeapItem, best_fit
from xla_stalloc.scheduling import Buffer, Graph


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_without_reuse_each_buffer_is_an_item(data, random_graphs):
    drawn = data.draw(random_graphs())
    buffers = [Buffer(b.size, b.touches, b.defs, (), b.live_in, b.live_out) for b in drawn.buffers]
    graph = Graph(drawn.predecessors, [0] * drawn.nodes, buffers)
    events = []
    for number, buffer in enumerate(buffers):
        events.append((-1 if buffer.live_in else buffer.touches[0], 0, number))
        events.append((graph.nodes if buffer.live_out else buffer.touches[-1], 1, number))
    clock = {(kind, number): time for time, (_, kind, number) in enumerate(sorted(events))}
    births = sorted(range(len(buffers)), key=lambda number: clock[0, number])
    items = [HeapItem(buffers[b].size, [(clock[0, b], clock[1, b])], rank) for rank, b in enumerate(births)]
    assert _core.heap_height(graph.kernel, graph.incumbent, 4) == best_fit(items, 4).height


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_height_is_never_below_the_peak(data, random_graphs):
    graph = data.draw(random_graphs())
    assert _core.heap_height(graph.kernel, graph.incumbent, 1) >= graph.peak(graph.incumbent)


def test_storage_that_is_taken_over_keeps_its_place():
    graph = Graph(
        predecessors=[[], [0], [1]],
        lump_bytes=[0, 5, 0],
        buffers=[Buffer(10, touches=[0, 1], defs=[0]), Buffer(10, touches=[1, 2], defs=[1], reuses=[0])],
    )
    assert _core.heap_height(graph.kernel, graph.incumbent, 1) == 15
