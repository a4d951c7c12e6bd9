"""The best packing so far, and when to stop looking for a better one."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Incumbent:
    """What solvers improve on.

    Attributes:
        offsets: int64[n], bytes; empty before the first packing.
        height: bytes; too many before the first packing.
        solver: what found it.
        seconds: after which it was found.
        target: bytes; a height that is low enough.
        interrupted: Ctrl-C ended the search.
    """

    def __init__(self, size: NDArray[np.int64], target: int, seconds: float) -> None:
        """Start the clock.

        Args:
            size: int64[n], bytes.
            target: bytes.
            seconds: for the whole search.
        """
        self._size = size
        self._started = time.perf_counter()
        self._end = self._started + seconds
        self.offsets: NDArray[np.int64] = np.empty(0, np.int64)
        self.height = 1 << 62
        self.solver = ""
        self.seconds = 0.0
        self.target = target
        self.interrupted = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - time.perf_counter()

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do, or no time to do it in."""
        return self.height <= self.target or self.left <= 0 or self.interrupted

    def offer(self, offsets: NDArray[np.int64], solver: str) -> None:
        """Take a packing if it is lower than the one there is."""
        height = int((offsets + self._size).max(initial=0))
        if height < self.height:
            self.offsets, self.height, self.solver = offsets, height, solver
            self.seconds = time.perf_counter() - self._started

    def take(self, packings: Iterable[NDArray[np.int64] | None], solver: str) -> None:
        """Let a solver go on, packing by packing, until this is done or Ctrl-C is pressed; not at all if it is done.

        Args:
            packings: int64[n] each, bytes; None where the solver tried something that came to nothing.
            solver: its name.
        """
        if self.done and len(self.offsets) == len(self._size):
            return
        try:
            for offsets in packings:
                if offsets is not None:
                    self.offer(offsets, solver)
                if self.done:
                    return
        except KeyboardInterrupt:
            if len(self.offsets) < len(self._size):
                raise  # there is nothing to come back with
            self.interrupted = True
