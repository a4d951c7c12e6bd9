"""A packing as low as time allows: the fastest solvers first, all of them until the lower bound is reached."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.packing import blocks as blocks_
from xla_stalloc.packing import portfolio
from xla_stalloc.packing.constrained import AroundObstacles
from xla_stalloc.packing.incumbent import Incumbent
from xla_stalloc.packing.placement import Placement, verify
from xla_stalloc.packing.problem import Problem


def solve(problem: Problem, seconds: float = 3.0, seed: int = 0, rounds: int | None = None) -> Placement:
    """The lowest packing found in the time; each heap stops at its capacity, or at the lower bound.

    Solvers that cannot handle a constraint of the problem are skipped. Every packing is checked by the verifier before
    it is returned. Ctrl-C ends the search with the best so far.

    Args:
        problem: what is to be packed.
        seconds: for the search, about; a first packing is always found.
        seed: of the order in which things are tried.
        rounds: of improvement after the first packings, for each heap. The same seed and rounds give the same packing
            wherever the seconds are enough, e.g. infinite.

    Raises:
        ValueError: pinned buffers are in each other's way, or in that of a forbidden region.
        PlacementError: a packing is wrong. It should not happen.
    """
    end = time.perf_counter() + seconds
    offsets = np.where(problem.pinned >= 0, problem.pinned, 0)
    heap = np.zeros(len(problem.size), np.int64)
    heights, bound, solvers, when = [0] * len(problem.heaps), 0, [], 0.0
    for space in sorted({h.space for h in problem.heaps}):
        numbers = [number for number, h in enumerate(problem.heaps) if h.space == space]
        heap[problem.space == space] = numbers[0]
        rows = np.flatnonzero((problem.space == space) & (problem.size > 0))
        shared = blocks_.of(problem, rows, numbers[0]).bound if len(numbers) > 1 else 0
        for number in numbers:
            last = number == numbers[-1]
            inside = rows if last else _first_heap(problem, rows, number, end - time.perf_counter())
            best, least = _one_heap(problem, inside, number, end - time.perf_counter(), seed, rounds)
            offsets[inside], heap[inside], heights[number] = best.offsets, number, best.height
            bound += 0 if len(numbers) > 1 else least
            if len(inside):
                solvers.append(best.solver)
            when += best.seconds
            rows = np.setdiff1d(rows, inside, assume_unique=True)
        bound += shared
    placement = Placement(offsets, heap, tuple(heights), bound, " and ".join(dict.fromkeys(solvers)), when)
    verify(problem, placement.offsets, placement.heap, placement.heights)
    return placement


def _one_heap(
    problem: Problem, rows: NDArray[np.int64], number: int, seconds: float, seed: int, rounds: int | None
) -> tuple[Incumbent, int]:
    """The best packing of these buffers on this heap, by buffer, and the lower bound in bytes."""
    blocks = blocks_.of(problem, rows, number)
    capacity = problem.heaps[number].capacity
    incumbent = Incumbent(blocks.heights, max(blocks.bound, capacity or 0), seconds)
    bound = blocks.bound
    if blocks.plain:
        bound = portfolio.pack(blocks, incumbent, capacity, seed, rounds)
    else:
        incumbent.take(AroundObstacles(blocks, seed).packings(incumbent, rounds), "first fit")
    incumbent.offsets = incumbent.offsets[blocks.block_of]
    return incumbent, bound


def _first_heap(problem: Problem, rows: NDArray[np.int64], number: int, seconds: float) -> NDArray[np.int64]:
    """Which buffers go on this heap of a space that has more of them: all that it has room for."""
    capacity = problem.heaps[number].capacity
    if capacity is None:
        return rows
    blocks = blocks_.of(problem, rows, number)
    return rows[AroundObstacles(blocks, 0).fill(capacity, seconds)[blocks.block_of]]
