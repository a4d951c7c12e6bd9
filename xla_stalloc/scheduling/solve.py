"""Orders of low peak: XLA's own and depth-first searches, then tightened, cut at their peaks, searched from."""

from __future__ import annotations

from dataclasses import dataclass

from xla_stalloc import _core
from xla_stalloc.scheduling.bounds import lower_bound
from xla_stalloc.scheduling.graph import Graph, Int64Array

DEFAULT_MOVES = 100_000
"""Of local search, over all its runs."""

_WINDOW = 400
_MOVES_PER_NODE = 8  # in one run: several short ones find more than a long one, and differ more
_RUNS = range(3, 13)
_CUT = 3  # orders to cut
_STARTS = 4  # orders to search from
_ALIGNMENT = 64  # of XLA:CPU; only ranks orders
_NEAR = 1.2  # times the best peak: no order above that is worth a search or a packing
_KEPT = 8
_PACKED_NODES = 50_000  # over all packings: on large graphs they would cost more than the search


@dataclass(frozen=True)
class Candidate:
    """An order and what found it."""

    name: str
    order: Int64Array
    """int64[nodes]."""
    peak_bytes: int
    """The most live at once."""


def solve(graph: Graph, moves: int = DEFAULT_MOVES, seed: int = 0) -> list[Candidate]:
    """Distinct orders, the lowest peak first, XLA's own (``"incumbent"``) always among them.

    Several are worth having because an allocator leaves holes in some. Deterministic: effort is counted in `moves`,
    never in seconds, and randomness comes from `seed` alone, so that all processes of a job find the same orders.
    """
    incumbent = _candidate(graph, "incumbent", graph.incumbent)
    simple = [incumbent, *(_depth_first(graph, child_order) for child_order in _core.ChildOrder)]
    tight = [_tighten(graph, candidate) for candidate in simple]
    found = [*simple, *tight, *(_cut_peaks(graph, candidate) for candidate in _distinct(tight)[:_CUT])]
    found += _search(graph, _near(_distinct(found))[:_STARTS], moves, seed)
    return _select(graph, _distinct(found), incumbent)


def _search(graph: Graph, starts: list[Candidate], moves: int, seed: int) -> list[Candidate]:
    """Local search from each start in turn; its results, and those tightened: search scatters short lives about."""
    floor = lower_bound(graph)
    runs = max(_RUNS.start, min(_RUNS.stop - 1, moves // (_MOVES_PER_NODE * max(1, graph.nodes))))
    found = []
    for run in range(runs):
        start = starts[run % len(starts)]
        order = _core.local_search(graph.kernel, start.order, moves // runs, _WINDOW, floor, seed + run)
        searched = _candidate(graph, f"local_search({start.name}, {seed + run})", order)
        found += [searched, _tighten(graph, searched)]
    return found


def _select(graph: Graph, candidates: list[Candidate], incumbent: Candidate) -> list[Candidate]:
    """The few to return: of those with about the best peak, the ones that pack best; and the incumbent."""
    near = _near(candidates)[: max(_KEPT // 2, min(2 * _KEPT, _PACKED_NODES // max(1, graph.nodes)))]
    if len(near) > _KEPT:
        near = sorted(near, key=lambda c: _core.heap_height(graph.kernel, c.order, _ALIGNMENT))[:_KEPT]
    return _distinct([incumbent, candidates[0], *near])


def _candidate(graph: Graph, name: str, order: Int64Array) -> Candidate:
    return Candidate(name, order, graph.peak(order))


def _depth_first(graph: Graph, child_order: _core.ChildOrder) -> Candidate:
    order = _core.depth_first(graph.kernel, child_order)
    return _candidate(graph, f"depth_first({child_order.name.lower()})", order)


def _tighten(graph: Graph, candidate: Candidate) -> Candidate:
    return _candidate(graph, f"tighten({candidate.name})", _core.tighten(graph.kernel, candidate.order))


def _cut_peaks(graph: Graph, candidate: Candidate) -> Candidate:
    return _candidate(graph, f"cut_peaks({candidate.name})", _core.cut_peaks(graph.kernel, candidate.order))


def _near(candidates: list[Candidate]) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.peak_bytes <= _NEAR * candidates[0].peak_bytes]


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Lowest peak first, what was found earlier first among equals; one of each order."""
    unique: dict[bytes, Candidate] = {}
    for candidate in candidates:
        unique.setdefault(candidate.order.tobytes(), candidate)
    return sorted(unique.values(), key=lambda candidate: candidate.peak_bytes)
