"""No order beats the bound."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc.scheduling import Buffer, Graph, lower_bound, verify_order


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_bound_is_below_every_order(data, random_graphs, lowest_peak):
    graph = data.draw(random_graphs())
    assert lower_bound(graph) <= lowest_peak(graph)


def test_what_lives_through_a_node_counts_and_what_can_be_taken_over_does_not():
    graph = Graph(
        predecessors=[[], [0], [1]],
        lump_bytes=[0, 3, 0],
        buffers=[
            Buffer(100, touches=[0, 2], defs=[0]),  # through node 1
            Buffer(10, touches=[0, 1], defs=[0]),
            Buffer(10, touches=[1, 2], defs=[1], reuses=[1]),
        ],
    )
    assert lower_bound(graph) == 113


def test_nodes_beyond_one_block_of_reachability_are_bounded_too():
    nodes = 2500
    chain = [[node - 1] if node else [] for node in range(nodes)]
    buffers = [Buffer(1, touches=[node, nodes - 1], defs=[node]) for node in range(nodes - 1)]
    assert lower_bound(Graph(chain, [0] * nodes, buffers)) == nodes - 1


def test_what_may_run_on_either_side_counts_by_the_cheaper_side():
    """While node 3 runs, either what node 1 reads is still live, or what it wrote is."""
    graph = Graph(
        predecessors=[[], [0], [0], [2], [1, 3]],
        lump_bytes=[0, 0, 0, 50, 0],
        buffers=[
            Buffer(9, touches=[0, 1], defs=[0]),
            Buffer(7, touches=[1, 4], defs=[1]),
            Buffer(1, touches=[2, 3, 4], defs=[2]),
        ],
    )
    assert lower_bound(graph) == 58
    assert min(verify_order(graph, order) for order in ([0, 1, 2, 3, 4], [0, 2, 1, 3, 4], [0, 2, 3, 1, 4])) == 58
