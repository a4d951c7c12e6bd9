"""Orders for GPUs: less memory, and no more communication exposed than in the order that came in.

XLA's latency-hiding scheduler buys its overlap with memory. Here it is the other way round: the search starts from an
order of least memory and hides communication within that memory. Times are a model's, so an order has to hold for
others too: it is designed for links as fast as assumed and three times slower, and compared with the stock order where
links and arithmetic are slower and faster than assumed, and where every single time is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from xla_stalloc import _core
from xla_stalloc.hlo import Computation
from xla_stalloc.scheduling.cost import Costs
from xla_stalloc.scheduling.graph import Graph, Int64Array
from xla_stalloc.scheduling.solve import solve

_WINDOW = 1_000  # positions that a move may disturb
_DESIGN = ((Fraction(1), 4), (Fraction(3), 1))  # communication times of the search, and how much each counts
_RUNS = ((200, 8), (40, 4), (4, 2))  # the effort divided by this, and how many runs of it
_STARTS = 2  # orders of least memory to start from
_LIMITS = tuple(Fraction(percent, 100) for percent in (100, 104, 110, 120, 140, 170, 200))  # of the least memory
_BELOW = tuple(Fraction(percent, 100) for percent in (100, 95, 90, 80))  # of a budget, for what packing loses
_NOISE = tuple(Fraction(percent, 100) for percent in (55, 67, 82, 100, 122, 149, 182))  # log-normal, about 40 %
_NOISE_SEED = 7

# Communication and computation times, and whether each single one is off besides; the first case is the model itself.
_CASES: tuple[tuple[Fraction, Fraction, bool], ...] = (
    (Fraction(1), Fraction(1), False),
    (Fraction(1, 2), Fraction(1), False),
    (Fraction(3, 2), Fraction(1), False),
    (Fraction(2), Fraction(1), False),
    (Fraction(3), Fraction(1), False),
    (Fraction(1), Fraction(3, 5), False),
    (Fraction(1), Fraction(3, 2), False),
    (Fraction(2), Fraction(3, 2), False),
    (Fraction(1), Fraction(1), True),
)
_LOST = 1  # cases that an order may lose, but never the first


@dataclass(frozen=True)
class Times:
    """Times of a graph's nodes, in nanoseconds, int64[nodes] each.

    Attributes:
      compute: on the compute stream.
      communication: on the communication stream.
      waits_for: the node whose communication the node waits for; -1 for none.
    """

    compute: Int64Array
    communication: Int64Array
    waits_for: Int64Array

    def streams(
        self, communication: Fraction = Fraction(1), compute: Fraction = Fraction(1), noise: bool = False
    ) -> _core.Streams:
        """For the simulator, with all times of a kind multiplied by a factor; and by random ones with `noise`."""
        factors = np.ones((2, len(self.compute)), np.int64) * 100
        if noise:
            table = np.array([int(factor * 100) for factor in _NOISE])
            factors = table[np.random.default_rng(_NOISE_SEED).integers(len(table), size=factors.shape)]
        return _core.Streams(
            compute=_scaled(self.compute * factors[0] // 100, compute),
            communication=_scaled(self.communication * factors[1] // 100, communication),
            waits_for=self.waits_for,
        )


def _scaled(nanoseconds: Int64Array, factor: Fraction) -> Int64Array:
    return nanoseconds * factor.numerator // factor.denominator


def times(computation: Computation, members: Sequence[Sequence[int]], costs: Costs) -> Times:
    """Times of nodes that stand for these instructions (ids) of a computation."""
    instructions = {instruction.id: instruction for instruction in computation.instructions}
    node_of = {id: node for node, ids in enumerate(members) for id in ids}
    compute, communication = np.zeros((2, len(members)), np.int64)
    waits_for = np.full(len(members), -1, np.int64)
    for node, ids in enumerate(members):
        for instruction in (instructions[id] for id in ids):
            compute[node] += costs.kernel(instruction)
            sent = costs.collective(instruction)
            communication[node] += sent
            if instruction.opcode.endswith("-done"):
                waits_for[node] = node_of[instruction.operands[0].id]
            elif sent and not instruction.opcode.endswith("-start"):
                waits_for[node] = node
    return Times(compute, communication, waits_for)


def orders_within(graph: Graph, known: Times, start: Int64Array, moves: int, limit: int) -> list[Int64Array]:
    """Orders that expose less communication than `start` and need about `limit` bytes at most, the best one first.

    What they need when packed is for the caller to find out; some leave room for what packing loses.

    Args:
      graph: the problem.
      known: times of its nodes.
      start: the order to improve.
      moves: effort of the longest search.
      limit: bytes.
    """
    scenarios = _scenarios(known)

    def exposed(order: Int64Array) -> int:
        return sum(weight * _core.simulate(graph.kernel, streams, order)[1] for streams, weight in scenarios)

    found = []
    for below in (int(factor * limit) for factor in _BELOW):
        for origin in (order for order in (start, graph.incumbent) if order is start or graph.peak(order) <= below):
            within = max(below, graph.peak(origin))
            for seed, (divisor, _) in enumerate(_RUNS):
                found.append(_search(graph, scenarios, origin, within, moves // divisor, seed))
    before = exposed(start)
    return sorted((order for order in found if exposed(order) < before), key=exposed)


def hiding_orders(graph: Graph, known: Times, moves: int) -> list[Int64Array]:
    """Orders of less memory that expose no more communication than the stock order, which is the graph's numbering.

    With the least memory first, and searches as short as they may be: the longer one is, the more holes its order
    leaves in the heap.

    Args:
      graph: the problem.
      known: times of its nodes.
      moves: effort of the searches within one limit of memory.
    """
    stock_peak = graph.peak(graph.incumbent)
    starts = [candidate for candidate in solve(graph) if candidate.peak_bytes < stock_peak][:_STARTS]
    if not starts:
        return []
    compared = Comparison(graph, known)
    scenarios = _scenarios(known)
    for limit in (int(factor * starts[0].peak_bytes) for factor in _LIMITS):
        for divisor, runs in _RUNS if limit < stock_peak else ():
            found = (
                _search(graph, scenarios, starts[seed % len(starts)].order, limit, moves // divisor, seed)
                for seed in range(runs)
            )
            if holding := [order for order in found if compared.holds(order)]:
                return holding
    return []


def _scenarios(known: Times) -> list[tuple[_core.Streams, int]]:
    return [(known.streams(factor), weight) for factor, weight in _DESIGN]


def _search(
    graph: Graph, scenarios: list[tuple[_core.Streams, int]], start: Int64Array, limit: int, moves: int, seed: int
) -> Int64Array:
    return _core.overlap_search(graph.kernel, scenarios, start, limit, moves, window=_WINDOW, seed=seed)


class Comparison:
    """Compares orders of a graph with the stock order, which is its numbering."""

    def __init__(self, graph: Graph, known: Times) -> None:
        """Simulates the stock order in all cases."""
        self._graph = graph
        self._cases = [known.streams(*case) for case in _CASES]
        self.stock = self.exposed(graph.incumbent)

    def exposed(self, order: Int64Array) -> list[int]:
        """Nanoseconds in which nothing is computed because communication is waited for, in each case."""
        return [_core.simulate(self._graph.kernel, streams, order)[1] for streams in self._cases]

    def wins(self, order: Int64Array) -> list[bool]:
        """In which cases the order exposes no more communication than stock's; the first is the model itself."""
        return [ours <= stock for ours, stock in zip(self.exposed(order), self.stock, strict=True)]

    def holds(self, order: Int64Array) -> bool:
        """Whether it does so by the model itself, and in all other cases but one."""
        wins = self.wins(order)
        return wins[0] and wins.count(False) <= _LOST
