"""Small instances with next to no room to spare: offsets that fit into a capacity, or the proof that there are none.

The kernels know neither bytes nor alignment. An item is rounded up to the alignment, which costs nothing as long as all
have the same one, and what is left is divided by the greatest common divisor of the sizes: items that gravity leaves in
place lie at sums of sizes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xla_stalloc import _core
from xla_stalloc._core import Verdict
from xla_stalloc.packing.problem import max_load

MOST_ITEMS = 12_000
"""Beyond, the searches hardly ever get to the end of a branch, and they recurse as deep as there are items."""
UNLIMITED = 1 << 62
"""More work than anyone waits for."""
_FIRST_SLICE = 2_000_000  # work, a few hundredths of a second; what is spent on one height before another gets a turn


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a capacity is enough."""

    verdict: Verdict
    """``UNKNOWN`` when work or seconds were over first, or when what was proven does not cover this very capacity."""
    offsets: NDArray[np.int64] | None
    """Of each item, in bytes; None unless it fits."""


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest packing that was found."""

    offsets: NDArray[np.int64]
    """Of each item, in bytes."""
    height: int
    """Bytes."""
    lower_bound: int
    """Bytes; no packing is lower. Equal to the height: this one is optimal."""
    interrupted: bool = False
    """Ctrl-C ended the search early."""


class TightPacker:
    """The searches for one instance: a later call goes on with what an earlier one has learned."""

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, size: ArrayLike, alignment: ArrayLike = 1, seed: int = 0
    ) -> None:
        """Take in an instance.

        Args:
            lower: of each item, the time from which on it is live.
            upper: of each item, the time from which on it is not.
            size: of each item, in bytes; an empty one gets offset 0.
            alignment: bytes that an item's offset is a multiple of: one for each item, or one for all. Different ones
                have to divide the largest, by which all items are then aligned: that may miss the best packing.
            seed: of the order in which things are tried. The same seed and work find the same offsets.

        Raises:
            ValueError: the arrays differ in length, a size is negative, an item dies before it is born, an alignment is
                not positive or does not divide the largest, or there are more than ``MOST_ITEMS`` items.
        """
        self._size = np.asarray(size, np.int64)
        lowers, uppers = np.asarray(lower, np.int64), np.asarray(upper, np.int64)
        alignments = np.broadcast_to(np.asarray(alignment, np.int64), self._size.shape)
        _check(lowers, uppers, self._size, alignments)
        self._items = np.flatnonzero(self._size)
        lowers, uppers, size = lowers[self._items], uppers[self._items], self._size[self._items]
        alignments = alignments[self._items]
        coarsest = int(alignments.max(initial=1))
        padded = -(-size // coarsest) * coarsest
        self._most_padding = int((padded - size).max(initial=0))
        self._exact = bool((alignments == coarsest).all())
        self._unit = int(np.gcd.reduce(padded)) if len(padded) else 1
        self._units = padded // self._unit
        self._least = max_load(lowers, uppers, self._units)
        self._bound = max_load(lowers, uppers, size)
        self._new_search = partial(_core.TightSearch, lowers, uppers, self._units)
        self._seed = seed
        self._search = self._new_search(seed)
        self._work = 0  # of other searches
        self._start = _best_fit(lowers, uppers, self._units)

    @property
    def lower_bound(self) -> int:
        """Bytes: most that is live at once, padding included where every packing has to pay for it."""
        return max(self._bound, self._proven(self._least))

    @property
    def work(self) -> int:
        """Work done so far."""
        return self._search.work + self._work

    def fit(self, capacity: int, work: int = UNLIMITED, seconds: float = math.inf) -> Fit:
        """Look for offsets below a capacity.

        Args:
            capacity: bytes that no item may reach beyond.
            work: to be spent at most, about; what is found depends on this and on the seed only, unless time runs out.
            seconds: to be spent at most.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if capacity < self.lower_bound:
            return Fit(Verdict.INFEASIBLE, None)
        verdict, offsets = self._search.pack(capacity // self._unit, work, seconds)
        if verdict is Verdict.INFEASIBLE and self._proven(capacity // self._unit + 1) <= capacity:
            verdict = Verdict.UNKNOWN
        return Fit(verdict, self._in_bytes(offsets) if verdict is Verdict.FITS else None)

    def descend(self, floor: int = 0, work: int = UNLIMITED, seconds: float = math.inf) -> Iterator[Lowest]:
        """Lower and lower packings, starting from best fit; the last one has the best lower bound as well.

        Most of the work goes into two heights: the least one that is not ruled out, where a tight instance often fits,
        and the next power of two, which is what memories have. The rest goes into heights below the lowest one reached.

        Args:
            floor: bytes; being lower than that is of no use to the caller.
            work: to be spent at most, about; what is found depends on this and on the seed only, unless time runs out.
            seconds: to be spent at most.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        end, last = time.monotonic() + seconds, self.work + work
        offsets, high = self._start, self._height(self._start)
        least = self._least  # of the heights that are not ruled out
        slice_, failed = _FIRST_SLICE, -1  # the highest that one slice was not enough for
        searches: dict[int, _core.TightSearch] = {}  # of heights: attempts get longer the more have failed at it
        spent = {"least": 0, "round": 0, "middle": 0}
        yield self._lowest(offsets, least)
        while (low := max(least, floor // self._unit)) < high:
            failed = max(failed, low)
            step = 1 << max((high - low) // 16, 1).bit_length() - 1  # round heights, so as to come back to them
            if high - failed <= step:  # bisected: once more, with more patience
                slice_, failed = 2 * slice_, low
            middle = max((failed + high) // 2 // step, failed // step + 1) * step
            round_ = (1 << (low * self._unit - 1).bit_length()) // self._unit
            targets = {"least": low, "round": round_, "middle": min(middle, high - 1)}
            shares = {"least": 2, "round": 2, "middle": 1}  # of the work
            if round_ == low:
                shares["least"] += shares.pop("round")
            elif round_ >= high:
                del shares["round"]
            aim = min(shares, key=lambda aim: spent[aim] / shares[aim])
            target = targets[aim]
            spend, left = min(slice_, last - self.work), end - time.monotonic()
            if spend <= 0 or left <= 0:
                break
            if aim != "least" and target not in searches:
                searches[target] = self._new_search(self._seed)
            search = self._search if aim == "least" else searches[target]
            before = search.work
            verdict, found = search.pack(target, spend, left)
            spent[aim] += search.work - before
            self._work += 0 if aim == "least" else search.work - before
            if verdict is Verdict.FITS:
                offsets, high = found, self._height(found)
                yield self._lowest(offsets, least)
            elif verdict is Verdict.INFEASIBLE:
                least = max(least, target + 1)
            elif aim == "middle":
                failed = target
        yield self._lowest(offsets, least)

    def lowest(self, floor: int = 0, work: int = UNLIMITED, seconds: float = math.inf) -> Lowest:
        """The last packing of ``descend``. Ctrl-C ends the search as well, with what there is."""
        packings = self.descend(floor, work, seconds)
        lowest = next(packings)
        try:
            for packing in packings:
                lowest = packing
        except KeyboardInterrupt:
            return replace(lowest, interrupted=True)
        return lowest

    def _lowest(self, offsets: NDArray[np.int64], least: int) -> Lowest:
        placed = self._in_bytes(offsets)
        height = int((placed + self._size).max(initial=0))
        return Lowest(placed, height, max(self._bound, self._proven(least)))

    def _proven(self, units: int) -> int:
        """Bytes that a packing needs when the padded items need this many units: the top one may stop short of them."""
        return units * self._unit - self._most_padding if self._exact else 0

    def _height(self, offsets: NDArray[np.int64]) -> int:
        """Units, padding included."""
        return int((offsets + self._units).max(initial=0))

    def _in_bytes(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        result = np.zeros(len(self._size), np.int64)
        result[self._items] = offsets * self._unit
        return result


def _check(
    lower: NDArray[np.int64], upper: NDArray[np.int64], size: NDArray[np.int64], alignment: NDArray[np.int64]
) -> None:
    if not lower.shape == upper.shape == size.shape or size.ndim != 1:
        raise ValueError(f"lower, upper and size have the shapes {lower.shape}, {upper.shape} and {size.shape}")
    if len(size) > MOST_ITEMS:
        raise ValueError(f"{len(size)} items: an exact search takes at most {MOST_ITEMS}")
    coarsest = alignment.max(initial=1)
    for what, wrong in (
        ("a negative size", size < 0),
        ("a lifetime that ends before it starts, or at once", lower >= upper),
        ("an alignment that is not positive", alignment <= 0),
    ):
        if wrong.any():
            raise ValueError(f"item {int(wrong.argmax())} has {what}")
    if (coarsest % alignment).any():
        item = int((coarsest % alignment != 0).argmax())
        raise ValueError(f"item {item} has an alignment of {alignment[item]}: it does not divide another, {coarsest}")
    if sum(map(int, size)) + len(size) * int(coarsest) >= UNLIMITED:
        raise ValueError(f"the items have {sum(map(int, size))} bytes in all: offsets are limited to {UNLIMITED}")


def _best_fit(lower: NDArray[np.int64], upper: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """XLA's packing: somewhere to start from."""
    numbers = np.arange(len(size) + 1)
    return _core.best_fit(size, numbers, lower, upper - 1, numbers[:-1], 1)[1]
