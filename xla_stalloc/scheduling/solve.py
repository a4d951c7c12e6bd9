"""Orders of low peak: XLA's own, depth-first searches, tightened versions of them, local search from the best."""

from __future__ import annotations

from dataclasses import dataclass

from xla_stalloc import _core
from xla_stalloc.scheduling.bounds import lower_bound
from xla_stalloc.scheduling.graph import Graph, Int64Array

DEFAULT_MOVES = 100_000
"""Of local search, over all its starts."""

_WINDOW = 400
_STARTS = 3


@dataclass(frozen=True)
class Candidate:
    """An order and what found it."""

    name: str
    order: Int64Array
    """int64[nodes]."""
    peak_bytes: int


def solve(graph: Graph, moves: int = DEFAULT_MOVES, seed: int = 0) -> list[Candidate]:
    """Distinct orders, the lowest peak first, XLA's own (``"incumbent"``) always among them.

    Several are worth having because an allocator may fragment on the best of them. Deterministic: effort is counted in
    `moves`, never in seconds, and randomness comes from `seed` alone, so all processes of a job find the same orders.
    """
    found = [_candidate(graph, "incumbent", graph.incumbent)]
    for child_order in _core.ChildOrder:
        name = f"depth_first.{child_order.name.lower()}"
        found.append(_candidate(graph, name, _core.depth_first(graph.kernel, child_order)))
    found += [_candidate(graph, f"tighten({c.name})", _core.tighten(graph.kernel, c.order)) for c in found]
    floor = lower_bound(graph)
    starts = _distinct(found)[:_STARTS]
    for number, start in enumerate(starts):
        order = _core.local_search(graph.kernel, start.order, moves // len(starts), _WINDOW, floor, seed + number)
        found.append(_candidate(graph, f"local_search({start.name})", order))
    return _distinct(found)


def _candidate(graph: Graph, name: str, order: Int64Array) -> Candidate:
    return Candidate(name, order, graph.peak(order))


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Lowest peak first, what was found earlier first among equals; one of each order."""
    unique: dict[bytes, Candidate] = {}
    for candidate in candidates:
        unique.setdefault(candidate.order.tobytes(), candidate)
    return sorted(unique.values(), key=lambda candidate: candidate.peak_bytes)
