"""Sweeps over time that know when everything dies: lowest for traces of training steps, however long.

Two kinds of life have to be told apart, saved activations and scratch, and the ceiling has to be guessed. Both are
searched for: a sweep takes milliseconds, and less if the ceiling is too low.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xla_stalloc._core import Sections, Sweep, SweepRule
from xla_stalloc.packing.incumbent import Incumbent

_UNLIMITED = 1 << 62
_BISECTIONS = 5
_CLOSER = 0.9  # part of the room above the target that the next ceiling leaves


class Sweeps:
    """Sweeps of one problem, forward and backward in time."""

    def __init__(self, sections: Sections, alignment: int, seed: int) -> None:
        """Take in the items.

        Args:
            sections: of the items; sizes padded to the alignment.
            alignment: bytes that every offset is a multiple of.
            seed: of the order in which ceilings and thresholds are tried.
        """
        self._alignment = alignment
        self._directions = (Sweep(sections, False), Sweep(sections, True))
        self._durations = sections.last - sections.first
        self._random = np.random.default_rng(seed)

    def online(self, incumbent: Incumbent) -> Iterator[NDArray[np.int64]]:
        """What an allocator does at run time, first fit and best fit, from either end of time."""
        for rule in (SweepRule.BEST_FIT, SweepRule.FIRST_FIT):
            for sweep in self._directions:
                fits, offsets = sweep.place(_UNLIMITED, rule, 0, max(incumbent.left, 0.5))
                if fits:
                    yield offsets

    def under_ceilings(self, incumbent: Incumbent) -> Iterator[NDArray[np.int64]]:
        """The lowest ceiling of each way to sweep that does better than the others, by bisection."""
        for way in self._ways():
            reached = incumbent.target
            offsets = self._try(way, int(incumbent.target + (incumbent.height - incumbent.target) * _CLOSER), incumbent)
            for _ in range(_BISECTIONS):
                if offsets is None:
                    break
                yield offsets
                middle = (reached + incumbent.height) // 2
                lower = self._try(way, middle, incumbent)
                if lower is None:
                    reached = middle
                else:
                    offsets = lower

    def at_random(self, incumbent: Incumbent) -> Iterator[NDArray[np.int64] | None]:
        """Ways and ceilings at random, closer and closer to the target; without an end.

        Whether a sweep fits depends on its ceiling by chance, so a lower one may do where a higher one did not.
        """
        ways = self._ways()
        wins = np.ones(len(ways))
        while True:
            way = int(self._random.choice(len(ways), p=wins / wins.sum()))
            part = self._random.uniform(0.5, 1)
            ceiling = int(incumbent.target + (incumbent.height - 1 - incumbent.target) * part)
            offsets = self._try(ways[way], ceiling, incumbent)
            wins[way] += 0 if offsets is None else 2
            yield offsets

    def _ways(self) -> list[tuple[Sweep, SweepRule, int]]:
        """Direction, rule and threshold; thresholds at quantiles of the durations and a little above them."""
        if not len(self._durations):
            return []
        quantiles = np.quantile(self._durations, (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95), method="lower").astype(int)
        thresholds = sorted({t for q in quantiles.tolist() for t in (q, q + 1, 2 * q)})
        rules = (SweepRule.AFFINE, SweepRule.TWO_ENDED)
        return [(sweep, rule, t) for t in thresholds for rule in rules for sweep in self._directions]

    def _try(self, way: tuple[Sweep, SweepRule, int], ceiling: int, incumbent: Incumbent) -> NDArray[np.int64] | None:
        if ceiling >= incumbent.height or incumbent.left <= 0:
            return None
        sweep, rule, threshold = way
        ceiling = -(-ceiling // self._alignment) * self._alignment  # the padding of what lies at the top does not count
        fits, offsets = sweep.place(ceiling, rule, threshold, incumbent.left)
        return offsets if fits else None
