"""A graph that contradicts itself is refused, and told why."""

from __future__ import annotations

import pytest

from xla_stalloc.scheduling import Buffer, Graph, GraphError

CHAIN = [[], [0], [1]]


@pytest.mark.parametrize(
    ("predecessors", "lumps", "buffers", "message"),
    [
        (CHAIN, [0, 0], [], "2 lumps for 3 nodes"),
        ([[], [2], [0]], [0, 0, 0], [], r"node 1 has predecessors \[2\]"),
        (CHAIN, [0, -1, 0], [], "node 1 has a lump of -1"),
        (CHAIN, [0, 0, 0], [Buffer(-4, [0], [0])], "buffer 0 has -4 bytes"),
        (CHAIN, [0, 0, 0], [Buffer(4, [], [], live_in=True)], "buffer 0 is touched by no node"),
        (CHAIN, [0, 0, 0], [Buffer(4, [0, 3], [0])], r"buffer 0 is touched by \[0, 3\]"),
        (CHAIN, [0, 0, 0], [Buffer(4, [0, 0], [0])], r"buffer 0 is touched by \[0, 0\]"),
        (CHAIN, [0, 0, 0], [Buffer(4, [0], [1])], r"buffer 0 is written by \[1\]"),
        (CHAIN, [0, 0, 0], [Buffer(4, [0])], "buffer 0 is never written"),
        (CHAIN, [0, 0, 0], [Buffer(4, [0], [0], reuses=[0])], r"buffer 0 reuses \[0\]"),
        (CHAIN, [0, 0, 0], [Buffer(4, [0], [0], reuses=[1])], r"buffer 0 reuses \[1\]"),
    ],
)
def test_contradiction_is_named(predecessors, lumps, buffers, message):
    with pytest.raises(GraphError, match=message):
        Graph(predecessors, lumps, buffers)
