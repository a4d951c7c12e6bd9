"""Blocks of several lives around obstacles: first fit can handle them all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xla_stalloc._core import OrderedFit, Sections
from xla_stalloc.packing.blocks import Blocks
from xla_stalloc.packing.incumbent import Incumbent
from xla_stalloc.packing.problem import MOST_BYTES

_REPAIRS = 6  # rounds, each twice as long as the last
_RANDOM = 4096  # orders


class AroundObstacles:
    """First fit of the blocks that are not pinned; offsets are of all blocks."""

    def __init__(self, blocks: Blocks, seed: int) -> None:
        """Take in the blocks.

        Args:
            blocks: of any kind.
            seed: of everything random.
        """
        lower, upper, begin, end = blocks.obstacles
        columns = ((blocks.lower, lower), (blocks.upper, upper), (blocks.size, end - begin))
        sections = Sections(*(np.concatenate(pair) for pair in columns))
        pieces = np.arange(len(blocks.size))
        self._fit = OrderedFit(sections, blocks.starts, pieces, blocks.alignment)
        owner = np.repeat(np.arange(len(blocks.alignment)), np.diff(blocks.starts))
        for piece in np.flatnonzero(blocks.pinned[owner] >= 0).tolist():
            self._fit.pin(piece, int(blocks.pinned[owner[piece]]))
        for number, offset in enumerate(begin.tolist()):
            self._fit.pin(len(pieces) + number, offset)
        self._blocks, self._random = blocks, np.random.default_rng(seed)
        self._free = np.flatnonzero(blocks.pinned < 0)
        starts = blocks.starts[:-1]
        self._size = blocks.heights
        self._duration = np.add.reduceat(blocks.upper - blocks.lower, starts) if len(starts) else starts
        self._birth = np.minimum.reduceat(blocks.lower, starts) if len(starts) else starts
        self._death = np.maximum.reduceat(blocks.upper, starts) if len(starts) else starts

    def packings(self, incumbent: Incumbent, rounds: int | None) -> Iterator[NDArray[np.int64]]:
        """First fits in plain orders, those orders repaired, and disturbed versions of the best one."""
        orders = list(self.orders())
        best, least = orders[0], MOST_BYTES
        for order in orders:
            height, offsets = self._place(order, incumbent)
            if height < least:
                best, least = order, height
            yield from offsets
        for round_ in range(_REPAIRS):
            for order in orders:
                placements = 4 * len(order) << round_
                fits, found = self._fit.repair(order, incumbent.target, placements, round_, max(incumbent.left, 0))
                if fits:
                    yield self._whole(found)
        for _ in range(_RANDOM if rounds is None else rounds):
            if incumbent.left <= 0:
                return
            order = self._disturbed(best)
            height, offsets = self._place(order, incumbent)
            if height <= least:
                best, least = order, height
            yield from offsets

    def fill(self, limit: int, seconds: float) -> NDArray[np.bool_]:
        """Which blocks one heap of `limit` bytes takes, the largest first; pinned ones are always in it."""
        size, duration = self._size[self._free], self._duration[self._free]
        offsets = self._fit.fill(self._free[np.lexsort((-duration, -size))], limit, max(seconds, 1.0))
        return (offsets >= 0) | (self._blocks.pinned >= 0)

    def orders(self) -> Iterator[NDArray[np.int64]]:
        """By size, duration, area, birth and death."""
        size, duration = self._size[self._free], self._duration[self._free]
        birth, death = self._birth[self._free], self._death[self._free]
        for keys in ((-duration, -size), (-size, -duration), (-size.astype(np.float64) * duration,)):
            yield self._free[np.lexsort((birth, *keys))]
        yield self._free[np.lexsort((-size, -death, birth))]
        yield self._free[np.lexsort((-size, birth, -death))]

    def _place(self, order: NDArray[np.int64], incumbent: Incumbent) -> tuple[int, list[NDArray[np.int64]]]:
        height, offsets = self._fit.place(order, MOST_BYTES, max(incumbent.left, 1.0))
        return (height, [self._whole(offsets)]) if height <= MOST_BYTES else (height, [])

    def _whole(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(self._blocks.pinned >= 0, self._blocks.pinned, offsets)

    def _disturbed(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        order = order.copy()
        for _ in range(1 + len(order) // 16):
            a, b = self._random.integers(len(order), size=2) if len(order) else (0, 0)
            order[[a, b]] = order[[b, a]]
        return order
