"""Is this order right, and what is its peak? In plain Python, sharing no code with the solvers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xla_stalloc.scheduling.graph import Graph


class OrderError(ValueError):
    """An order that the program's meaning does not allow."""


def verify_order(graph: Graph, order: Iterable[int]) -> int:
    """Peak of the order in bytes.

    Raises:
        OrderError: a node is missing, doubled or unknown, runs before one that it needs, or reads what is not written.
    """
    sequence = [int(node) for node in order]
    position: dict[int, int] = {}
    for place, node in enumerate(sequence):
        if not 0 <= node < graph.nodes:
            raise OrderError(f"position {place} holds node {node}, but the graph's nodes are 0 to {graph.nodes - 1}")
        if node in position:
            raise OrderError(f"node {node} stands at positions {position[node]} and {place}: it must run once")
        position[node] = place
    for node in range(graph.nodes):
        if node not in position:
            raise OrderError(f"node {node} is missing from the order")
        for needed in graph.predecessors[node]:
            if position[needed] > position[node]:
                raise OrderError(
                    f"node {node} at position {position[node]} needs node {needed}, which runs later, "
                    f"at position {position[needed]}"
                )
    for number, buffer in enumerate(graph.buffers):
        opener = min(buffer.touches, key=position.__getitem__)
        if not buffer.live_in and opener not in buffer.defs:
            raise OrderError(
                f"node {opener} at position {position[opener]} is the first to touch buffer {number} but does not "
                f"write it; it is written by {list(buffer.defs)}"
            )
    return _peak(graph, sequence, position)


def _peak(graph: Graph, sequence: Sequence[int], position: dict[int, int]) -> int:
    ends = len(sequence)
    born = [-1 if b.live_in else min(position[node] for node in b.touches) for b in graph.buffers]
    dies = [ends if b.live_out else max(position[node] for node in b.touches) for b in graph.buffers]
    births: list[list[int]] = [[] for _ in sequence]
    deaths: list[list[int]] = [[] for _ in sequence]
    for number in range(len(graph.buffers)):
        if born[number] >= 0:
            births[born[number]].append(number)
        if dies[number] < ends:
            deaths[dies[number]].append(number)
    live = sum(buffer.size for buffer in graph.buffers if buffer.live_in)
    peak = 0
    for place, node in enumerate(sequence):
        taken: set[int] = set()
        for number in births[place]:
            buffer = graph.buffers[number]
            host = next(
                (
                    other
                    for other in buffer.reuses
                    if born[other] < place == dies[other]
                    and graph.buffers[other].size == buffer.size
                    and other not in taken
                ),
                None,
            )
            if host is None:
                live += buffer.size
            else:
                taken.add(host)
        peak = max(peak, live + graph.lump_bytes[node])
        live -= sum(graph.buffers[number].size for number in deaths[place] if number not in taken)
    return peak
