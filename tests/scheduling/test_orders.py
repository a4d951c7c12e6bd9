"""What each kernel does to an order, beyond what solve makes of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc import _core
from xla_stalloc.scheduling import Buffer, Graph, verify_order


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_orders_are_valid(data, random_graphs):
    graph = data.draw(random_graphs(max_nodes=16, max_buffers=16))
    for child_order in _core.ChildOrder:
        order = _core.depth_first(graph.kernel, child_order)
        verify_order(graph, order)
        verify_order(graph, _core.tighten(graph.kernel, order))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_local_search_never_raises_the_peak(data, random_graphs):
    graph = data.draw(random_graphs(max_nodes=16, max_buffers=16))
    window, seed = data.draw(st.integers(2, 20)), data.draw(st.integers(0, 5))
    order = _core.local_search(graph.kernel, graph.incumbent, 500, window, 0, seed)
    assert verify_order(graph, order) <= graph.peak(graph.incumbent)


def test_depth_first_visits_in_the_order_asked_for():
    """Sinks 5 and 6; node 5 needs 4, which needs 0, and 1; node 6 needs 2 and 3."""
    graph = Graph([[], [], [], [], [0], [1, 4], [2, 3]], [0] * 7, [Buffer(1, [node], [node]) for node in range(7)])
    orders = {
        name: _core.depth_first(graph.kernel, child).tolist() for name, child in _core.ChildOrder.__members__.items()
    }
    assert orders["EARLIEST_FIRST"] == [1, 0, 4, 5, 2, 3, 6]
    assert orders["LATEST_FIRST"] == [3, 2, 6, 0, 4, 1, 5]
    assert orders["SHALLOWEST_FIRST"] == [2, 3, 6, 1, 0, 4, 5]


def test_hill_valley_runs_first_what_leaves_least_of_its_peak():
    """Node 2's subtree peaks at 100 and leaves 1; node 3's peaks at 60 and leaves 50: the former goes first."""
    graph = Graph(
        predecessors=[[], [], [0], [1], [2, 3]],
        lump_bytes=[0, 0, 0, 0, 0],
        buffers=[
            Buffer(99, [0, 2], [0]),
            Buffer(10, [1, 3], [1]),
            Buffer(1, [2, 4], [2]),
            Buffer(50, [3, 4], [3]),
        ],
    )
    order = _core.depth_first(graph.kernel, _core.ChildOrder.HILL_VALLEY)
    assert order.tolist() == [0, 2, 1, 3, 4]
    assert verify_order(graph, order) == 100


def test_tighten_delays_what_takes_and_hastens_what_frees():
    """Nodes 0 to 2 each make 10 bytes, 3 to 5 each free them."""
    graph = Graph([[], [], [], [0], [1], [2]], [0] * 6, [Buffer(10, [node, node + 3], [node]) for node in range(3)])
    order = _core.tighten(graph.kernel, graph.incumbent)
    assert graph.peak(graph.incumbent) == 30
    assert verify_order(graph, order) == 10
