"""First fit of whole problems in good orders, and the repair of an order by what it leads to.

Programs with one dominant peak reach the lower bound this way, whatever their size: what lives at the peak goes first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from xla_stalloc._core import OrderedFit, Sections
from xla_stalloc.packing.incumbent import Incumbent

_UNLIMITED = 1 << 62
_PATIENCE = 0.1  # part of the time left for one repair
_FIRST_PASSES = 4  # placements for each item before a repair is given up
_SHAKES = 6  # in a row without a lower packing

Order = NDArray[np.int64]


class Orders:
    """First fits of one problem."""

    def __init__(self, sections: Sections, size: NDArray[np.int64], alignment: NDArray[np.int64], seed: int) -> None:
        """Take in the items.

        Args:
            sections: of the items.
            size: int64[n], bytes.
            alignment: int64[n], bytes that an offset is a multiple of.
            seed: of the random part of repairs.
        """
        self._first, self._last, self._load = sections.first, sections.last, sections.load
        self._size = size
        items = np.arange(len(size) + 1)
        self._fit = OrderedFit(sections, items, items[:-1], alignment)
        self._seed = seed

    def good(self) -> Iterator[Order]:
        """Orders that do well on programs with a peak, best first."""
        size, duration = self._size, self._last - self._first
        peak = int(self._load.argmax()) if len(self._load) else 0
        elsewhere = (self._first > peak) | (self._last <= peak)
        yield np.lexsort((-duration, np.where(elsewhere, -size, -duration), elsewhere))
        yield np.lexsort((-duration, -size, elsewhere))
        crowding = most_load(self._first, self._last, self._load)
        yield np.lexsort((-duration, -size, -crowding))
        yield np.lexsort((-size, -duration, -crowding))

    def plain(self) -> Iterator[Order]:
        """Orders that anyone would try: by birth, size, duration, area, death."""
        size, duration = self._size, self._last - self._first
        yield np.lexsort((-size, -self._last, self._first))
        yield np.lexsort((-duration, -size))
        yield np.lexsort((-size, -duration))
        yield np.lexsort((-duration, -size.astype(np.float64) * duration))
        yield np.lexsort((-size, self._first, -self._last))

    def straight(self, orders: Iterator[Order], limit: int, incumbent: Incumbent) -> Iterator[NDArray[np.int64]]:
        """The first fit of each order that stays at or below the limit, in bytes, and below what there is."""
        for order in orders:
            if incumbent.left <= 0:
                return
            yield from self._place(order, min(limit, incumbent.height - 1), incumbent)

    def repaired(self, incumbent: Incumbent, rounds: Iterable[int]) -> Iterator[NDArray[np.int64]]:
        """The good orders, changed until all ends below the target; in each round twice as long as in the last."""
        orders = list(self.good())
        for round_ in rounds:
            for order in orders:
                placements = 3 * len(order) << round_
                seed = self._seed + round_
                seconds = incumbent.left * _PATIENCE
                fits, offsets = self._fit.repair(order, incumbent.target, placements, seed, seconds)
                if fits:
                    yield offsets
                if incumbent.left <= 0:
                    return

    def squeezed(self, incumbent: Incumbent) -> Iterator[NDArray[np.int64] | None]:
        """The best packing from the bottom up, as an order that is repaired for lower and lower heights; has no end.

        How far down the next target lies follows from what worked: a failure halves the step, more or less, until steps
        are so small that more patience is due.
        """
        part, passes = 0.5, _FIRST_PASSES
        for attempt in itertools.count():
            order = np.argsort(incumbent.offsets, kind="stable")
            target = incumbent.target + int((incumbent.height - incumbent.target) * part)
            target = min(target, incumbent.height - 1)
            seconds = incumbent.left * _PATIENCE
            fits, offsets = self._fit.repair(order, target, passes * len(order), self._seed + attempt, seconds)
            if fits:
                part = max(part - 0.2, 0.0)
            else:
                part = 1 - (1 - part) * 0.6
                if part > 0.99:
                    part, passes = 0.5, 2 * passes
            yield offsets if fits else None

    def shaken(self, incumbent: Incumbent) -> Iterator[NDArray[np.int64]]:
        """What there is, dropped to the floor and, upside down, to the ceiling, as long as that helps."""
        offsets, height, failed = incumbent.offsets, incumbent.height, 0
        while failed < _SHAKES and incumbent.left > 0:
            if failed % 2:
                offsets = height - offsets - self._size
            height, dropped = self._fit.place(np.argsort(offsets, kind="stable"), _UNLIMITED, incumbent.left)
            if not len(dropped):
                return
            offsets = dropped
            failed = 0 if height < incumbent.height else failed + 1
            yield offsets

    def _place(self, order: Order, limit: int, incumbent: Incumbent) -> Iterator[NDArray[np.int64]]:
        height, offsets = self._fit.place(order, limit, incumbent.left)
        if height <= limit:
            yield offsets


def most_load(first: NDArray[np.int64], last: NDArray[np.int64], load: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each item: the most bytes that are alive in one of its sections. A sparse table, one level at a time."""
    most = np.zeros(len(first), np.int64)
    level = np.frexp((last - first).astype(np.float64))[1] - 1  # the largest power of two that is no longer than it
    for power in range(int(level.max(initial=-1)) + 1):
        width = 1 << power
        items = np.flatnonzero(level == power)
        most[items] = np.maximum(load[first[items]], load[last[items] - width])
        if len(load) > width:
            load = np.maximum(load[:-width], load[width:])
    return most
