"""Every kind of wrong order is rejected."""

from __future__ import annotations

import pytest

from xla_stalloc.scheduling import Buffer, Graph, OrderError, verify_order

GRAPH = Graph(
    predecessors=[[], [], [0], [1, 2]],
    lump_bytes=[0, 0, 0, 7],
    buffers=[
        Buffer(10, touches=[0, 2], defs=[0]),
        Buffer(4, touches=[1, 3], defs=[1]),
        Buffer(10, touches=[2, 3], defs=[2], reuses=[0]),
    ],
)


def test_right_orders_have_their_peaks():
    assert verify_order(GRAPH, [0, 1, 2, 3]) == 21
    assert verify_order(GRAPH, [1, 0, 2, 3]) == 21
    assert verify_order(GRAPH, [0, 2, 1, 3]) == 21


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2], "node 3 is missing"),
        ([0, 1, 2, 2, 3], "node 2 stands at positions 2 and 3"),
        ([0, 1, 2, 4], "position 3 holds node 4"),
        ([0, 1, 2, -1], "position 3 holds node -1"),
        ([2, 0, 1, 3], "node 2 at position 0 needs node 0"),
        ([0, 1, 3, 2], "node 3 at position 2 needs node 2"),
    ],
)
def test_wrong_order_is_rejected(order, message):
    with pytest.raises(OrderError, match=message):
        verify_order(GRAPH, order)


def test_read_before_write_is_rejected_even_without_an_edge():
    graph = Graph([[], []], [0, 0], [Buffer(4, touches=[0, 1], defs=[0])])
    assert verify_order(graph, [0, 1]) == 4
    with pytest.raises(OrderError, match="node 1 at position 0 is the first to touch buffer 0 but does not write it"):
        verify_order(graph, [1, 0])
