"""Random graphs, and the memory model once more: as literally as it is defined, and as slowly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import strategies as st

from xla_stalloc.scheduling import Buffer, Graph

Model = Callable[[Graph, "frozenset[int]", int], int]


@st.composite
def _random_graphs(draw: st.DrawFn, max_nodes: int = 9, max_buffers: int = 10) -> Graph:
    nodes = draw(st.integers(1, max_nodes))
    predecessors = [draw(st.sets(st.integers(0, node - 1), max_size=2)) if node else set() for node in range(nodes)]
    count = draw(st.integers(0, max_buffers))
    buffers = []
    for number in range(count):
        live_in = draw(st.booleans())
        maker = draw(st.integers(0, nodes - 1))
        users = draw(st.sets(st.integers(maker, nodes - 1), max_size=3)) - {maker}
        for user in users:
            predecessors[user].add(maker)
        writers = {maker} | draw(st.sets(st.sampled_from(sorted(users)), max_size=1)) if users else {maker}
        others = [other for other in range(count) if other != number]
        buffers.append(
            Buffer(
                size=draw(st.sampled_from([0, 1, 2, 2, 8])),
                touches=sorted({maker} | users),
                defs=[] if live_in and draw(st.booleans()) else sorted(writers),
                reuses=draw(st.lists(st.sampled_from(others), max_size=3, unique=True)) if others else [],
                live_in=live_in,
                live_out=draw(st.integers(0, 3)) == 0,
            )
        )
    lumps = [draw(st.sampled_from([0, 0, 0, 3])) for _ in range(nodes)]
    return Graph([sorted(before) for before in predecessors], lumps, buffers)


def _memory_at(graph: Graph, done: frozenset[int], node: int) -> int:
    """Bytes live while the node runs behind the done ones: the definition, word by word."""
    live = 0
    taken: set[int] = set()
    for buffer in graph.buffers:
        if _live_after(buffer, done):
            live += buffer.size
        elif node in buffer.touches and _unborn(buffer, done):
            for other in buffer.reuses:
                host = graph.buffers[other]
                was_there = _live_after(host, done)
                dies_here = node in host.touches and not _live_after(host, done | {node})
                if was_there and dies_here and host.size == buffer.size and other not in taken:
                    taken.add(other)
                    break
            else:
                live += buffer.size
    return live + graph.lump_bytes[node]


def _unborn(buffer: Buffer, done: frozenset[int]) -> bool:
    return not buffer.live_in and not done & set(buffer.touches)


def _live_after(buffer: Buffer, done: frozenset[int]) -> bool:
    return not _unborn(buffer, done) and (buffer.live_out or not set(buffer.touches) <= done)


def _lowest_peak(graph: Graph) -> int:
    """The least peak over all topological orders, by looking at every set of nodes that can be done."""

    @cache
    def rest(done: frozenset[int]) -> int:
        ready = [node for node in range(graph.nodes) if node not in done and set(graph.predecessors[node]) <= done]
        return min((max(_memory_at(graph, done, node), rest(done | {node})) for node in ready), default=0)

    return rest(frozenset())


@pytest.fixture(scope="session")
def random_graphs() -> Callable[..., st.SearchStrategy[Graph]]:
    """Strategy for small graphs with reuse, lumps, several writers, live_in and live_out buffers."""
    return _random_graphs


@pytest.fixture(scope="session")
def memory_at() -> Model:
    """Memory of a node behind a set of nodes."""
    return _memory_at


@pytest.fixture(scope="session")
def lowest_peak() -> Callable[[Graph], int]:
    """The least peak over all topological orders of a small graph."""
    return _lowest_peak
