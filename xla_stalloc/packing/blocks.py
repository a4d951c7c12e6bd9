"""Groups of buffers that share an offset, made one block each; what is pinned or forbidden, made an obstacle."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xla_stalloc._core import first_conflict
from xla_stalloc.packing.problem import Problem, max_load


@dataclass(frozen=True, eq=False)
class Blocks:
    """What is packed as one: b blocks of p pieces, each with its own life and size at the block's one offset.

    Attributes:
        lower: int64[p], time from which on a piece is live.
        upper: int64[p], time from which on it is not.
        size: int64[p], bytes.
        starts: int64[b + 1], where the pieces of each block begin.
        alignment: int64[b], bytes.
        block_of: int64[n], the block of each buffer of the problem.
        pinned: int64[b], offsets of blocks that have one, -1 for others.
        obstacles: int64[4, k], lower, upper, begin, end of bytes that are forbidden.
        bound: bytes; no packing is lower.
    """

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    size: NDArray[np.int64]
    starts: NDArray[np.int64]
    alignment: NDArray[np.int64]
    block_of: NDArray[np.int64]
    pinned: NDArray[np.int64]
    obstacles: NDArray[np.int64]
    bound: int

    @property
    def plain(self) -> bool:
        """Whether each block lives once, anywhere: what every solver can handle."""
        return len(self.size) == len(self.alignment) and not self.obstacles.size and bool((self.pinned < 0).all())

    @property
    def heights(self) -> NDArray[np.int64]:
        """int64[b], the size of the largest piece of each block."""
        if not len(self.alignment):
            return np.empty(0, np.int64)
        return np.maximum.reduceat(self.size, self.starts[:-1])


def of(problem: Problem, buffers: NDArray[np.int64], heap: int) -> Blocks:
    """The blocks of some buffers of a problem, none of them empty, on one heap; `block_of` is of these buffers.

    Raises:
        ValueError: pinned buffers are in each other's way, or in that of a forbidden region, or one group has two pins.
    """
    lower, upper, size = problem.lower[buffers], problem.upper[buffers], problem.size[buffers]
    if problem.same_slice_when_touching:
        upper = upper + 1
    group, pinned, alignment = problem.group[buffers], problem.pinned[buffers], problem.alignment[buffers]
    alone = np.flatnonzero(group < 0)
    numbers, rows = np.unique(group[group >= 0], return_inverse=True)
    block_of = np.empty(len(buffers), np.int64)
    block_of[alone] = np.arange(len(alone))
    block_of[group >= 0] = len(alone) + rows
    starts = np.arange(len(alone) + 1)
    columns = [lower[alone], upper[alone], size[alone], starts, alignment[alone], pinned[alone]]
    if len(numbers):
        columns = [np.concatenate(pair) for pair in zip(columns, _grouped(problem, buffers, upper), strict=True)]
    lower, upper, size, starts, alignment, pinned = columns
    obstacles = np.array(
        [(r.lower, r.upper, r.begin, r.end) for r in problem.forbidden if r.heap == heap and r.begin < r.end], np.int64
    ).reshape(-1, 4)
    tops = np.maximum.reduceat(size, starts[:-1]) + pinned if len(pinned) else pinned
    bound = max(max_load(lower, upper, size), int(tops[pinned >= 0].max(initial=0)))
    blocks = Blocks(lower, upper, size, starts, alignment, block_of, pinned, obstacles.T, bound)
    _check_pins(blocks, buffers)
    return blocks


def _grouped(problem: Problem, buffers: NDArray[np.int64], upper: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The columns of the blocks of groups; starts count on from the last of those before."""
    members: dict[int, list[int]] = {}
    for row, number in enumerate(problem.group[buffers].tolist()):
        if number >= 0:
            members.setdefault(number, []).append(row)
    pieces: list[tuple[int, int, int]] = []
    starts, alignments, pins = [], [], []
    first = len(buffers) - sum(map(len, members.values()))
    for number in sorted(members):
        rows = members[number]
        lives = [(int(problem.lower[buffers[r]]), int(upper[r]), int(problem.size[buffers[r]])) for r in rows]
        pieces += _outline(lives)
        starts.append(first + len(pieces))
        alignments.append(int(np.lcm.reduce(problem.alignment[buffers[rows]])))
        pinned = {int(offset) for offset in problem.pinned[buffers[rows]] if offset >= 0}
        if len(pinned) > 1:
            raise ValueError(f"group {number} is pinned to the offsets {sorted(pinned)}: it can have only one")
        pins.append(pinned.pop() if pinned else -1)
    table = np.array(pieces, np.int64).reshape(-1, 3)
    return [*table.T, np.array(starts, np.int64), np.array(alignments, np.int64), np.array(pins, np.int64)]


def _outline(lives: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The largest size at each time, as pieces that do not overlap."""
    times = sorted({time for lower, upper, _ in lives for time in (lower, upper)})
    pieces: list[tuple[int, int, int]] = []
    for begin, end in itertools.pairwise(times):
        size = max((size for lower, upper, size in lives if lower <= begin < upper), default=-1)
        if size < 0:
            continue
        if pieces and pieces[-1][1:] == (begin, size):
            begin = pieces.pop()[0]
        pieces.append((begin, end, size))
    return pieces


def _check_pins(blocks: Blocks, buffers: NDArray[np.int64]) -> None:
    owner = np.repeat(np.arange(len(blocks.alignment)), np.diff(blocks.starts))
    pieces = np.flatnonzero(blocks.pinned[owner] >= 0)
    if not len(pieces):
        return
    lower, upper, owner = blocks.lower[pieces], blocks.upper[pieces], owner[pieces]
    begin = blocks.pinned[owner]
    end = begin + blocks.size[pieces]
    names = [f"buffer {buffer}" for buffer in buffers[np.unique(blocks.block_of, return_index=True)[1]]]
    a, b = first_conflict(lower, upper, begin, end, owner, False)
    if a >= 0:
        raise ValueError(f"{names[owner[a]]} and {names[owner[b]]} are pinned to each other's bytes")
    for region in blocks.obstacles.T.tolist():
        inside = (lower < region[1]) & (upper > region[0]) & (begin < region[3]) & (end > region[2])
        if inside.any():
            raise ValueError(f"{names[owner[inside.argmax()]]} is pinned to bytes that are forbidden")
