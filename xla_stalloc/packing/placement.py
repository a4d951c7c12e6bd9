"""What a packing says, and whether it is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xla_stalloc._core import first_conflict
from xla_stalloc.packing.problem import Problem
from xla_stalloc.packing.verify import PlacementError


@dataclass(frozen=True, eq=False)
class Placement:
    """Where each buffer goes.

    Attributes:
        offsets: int64[n], bytes.
        heap: int64[n], the number of the heap that each buffer is on.
        heights: bytes that each heap needs.
        lower_bound: bytes that no packing can be below, all heaps together.
        solver: what found it, e.g. "sweep".
        seconds: after which it was found.
    """

    offsets: NDArray[np.int64]
    heap: NDArray[np.int64]
    heights: tuple[int, ...]
    lower_bound: int
    solver: str
    seconds: float

    @property
    def height(self) -> int:
        """Bytes of all heaps together."""
        return sum(self.heights)

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no packing is lower."""
        return self.height <= self.lower_bound


def verify(problem: Problem, offsets: NDArray[np.int64], heap: NDArray[np.int64], heights: tuple[int, ...]) -> None:
    """Check that buffers can live where they were put, in O(n log n). Shares no code with the packers.

    Capacities are not looked at: a heap may need more than it has. What takes no bytes may be anywhere.

    Args:
        problem: what was packed.
        offsets: int64[n], bytes.
        heap: int64[n], number of a heap.
        heights: bytes that each heap is said to need.

    Raises:
        PlacementError: two buffers share a byte and a time, or one lies where it may not.
    """
    count, real = len(problem.size), problem.size > 0
    if offsets.shape != (count,) or heap.shape != (count,) or len(heights) != len(problem.heaps):
        raise PlacementError(f"{len(offsets)} offsets, {len(heap)} heaps: give one of each for each of {count} buffers")
    if count and not 0 <= heap.min() <= heap.max() < len(problem.heaps):
        raise PlacementError(f"the heaps are numbered from 0 to {len(problem.heaps) - 1}, not {heap.min()}")
    spaces = np.array([h.space for h in problem.heaps], np.int64)
    ends = offsets + problem.size
    for what, wrong in (
        ("is in another memory space", spaces[heap] != problem.space),
        ("has a negative offset", offsets < 0),
        ("is not aligned", offsets % problem.alignment != 0),
        ("is not where it is pinned", (problem.pinned >= 0) & (offsets != problem.pinned)),
        ("ends above the height", ends > np.array(heights, np.int64)[heap]),
    ):
        if (wrong & real).any():
            buffer = int((wrong & real).argmax())
            raise PlacementError(f"buffer {buffer} {what}: offset {offsets[buffer]} of heap {heap[buffer]}")
    _check_groups(problem, offsets, heap, real)
    for number, region in enumerate(problem.forbidden):
        inside = (heap == region.heap) & (offsets < region.end) & (ends > region.begin)
        inside &= (problem.lower < region.upper) & (problem.upper > region.lower) & real
        if inside.any():
            raise PlacementError(f"buffer {int(inside.argmax())} is in the forbidden region {number}")
    owners = np.where(problem.group < 0, np.arange(count), count + problem.group)
    for number in range(len(heights)):
        rows = np.flatnonzero((heap == number) & real)
        lower, upper = problem.lower[rows], problem.upper[rows]
        touching = problem.same_slice_when_touching
        a, b = first_conflict(lower, upper, offsets[rows], ends[rows], owners[rows], touching)
        if a >= 0:
            a, b = rows[a], rows[b]
            raise PlacementError(
                f"buffers {a} and {b} are both alive at time {problem.lower[b]}, at the bytes {offsets[a]} to "
                f"{ends[a]} and {offsets[b]} to {ends[b]} of heap {number}"
            )


def _check_groups(
    problem: Problem, offsets: NDArray[np.int64], heap: NDArray[np.int64], real: NDArray[np.bool_]
) -> None:
    rows = np.flatnonzero((problem.group >= 0) & real)
    _, first, group = np.unique(problem.group[rows], return_index=True, return_inverse=True)
    leader = rows[first[group]] if len(rows) else rows
    apart = (offsets[rows] != offsets[leader]) | (heap[rows] != heap[leader])
    if apart.any():
        raise PlacementError(f"buffers {leader[apart][0]} and {rows[apart][0]} are of one group, but not at one offset")
