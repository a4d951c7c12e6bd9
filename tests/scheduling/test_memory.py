"""The kernel's memory profile is the definition's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc.scheduling import Buffer, Graph, verify_order


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_profile_and_verifier_follow_the_definition(data, random_graphs, memory_at):
    graph = data.draw(random_graphs(max_nodes=12, max_buffers=14))
    order = []
    while len(order) < graph.nodes:
        done = set(order)
        ready = [n for n in range(graph.nodes) if n not in done and done.issuperset(graph.predecessors[n])]
        order.append(data.draw(st.sampled_from(ready)))
    expected = [memory_at(graph, frozenset(order[:k]), node) for k, node in enumerate(order)]
    array = np.array(order, dtype=np.int64)
    assert graph.memory(array).tolist() == expected
    assert verify_order(graph, order) == graph.peak(array) == max(expected)


def test_storage_is_taken_over_by_one_buffer_only():
    graph = Graph(
        predecessors=[[], [0]],
        lump_bytes=[0, 0],
        buffers=[
            Buffer(10, touches=[0, 1], defs=[0]),
            Buffer(10, touches=[1], defs=[1], reuses=[0], live_out=True),
            Buffer(10, touches=[1], defs=[1], reuses=[0], live_out=True),
        ],
    )
    assert graph.memory(graph.incumbent).tolist() == [10, 20]


def test_storage_of_a_buffer_that_lives_on_is_not_taken_over():
    graph = Graph(
        predecessors=[[], [0], [1]],
        lump_bytes=[0, 5, 0],
        buffers=[Buffer(10, touches=[0, 1, 2], defs=[0]), Buffer(10, touches=[1, 2], defs=[1], reuses=[0])],
    )
    assert graph.memory(graph.incumbent).tolist() == [10, 25, 20]


def test_graph_without_nodes_needs_nothing():
    graph = Graph([], [], [])
    assert graph.peak(graph.incumbent) == verify_order(graph, []) == 0


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], [0, 1, 2, 2]])
def test_order_that_is_none_is_refused(order):
    graph = Graph([[], [0], [1]], [0, 0, 0], [Buffer(4, [0, 2], [0])])
    with pytest.raises(ValueError, match="the order must hold every node once"):
        graph.memory(np.array(order, dtype=np.int64))
