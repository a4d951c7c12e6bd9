"""The regularity of a job: what it does once, and what it then does again and again.

STAlloc (arXiv 2507.16274) calls phases with the same allocations HomoPhase, requests that agree in size and life
HomoSize. Here the units are runs: executions of one program in a row. Two runs of one program are the same run, however
long each is, and the slots of a run are used in turns; so a hundred steps cost no more planning than three.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Runs:
    """A job as runs.

    Attributes:
        program: int64[runs].
        first: int64[runs], the execution with which it begins.
        length: int64[runs], executions.
        cycle: the first run that belongs to the cycle.
        period: runs in the cycle; 0 if nothing repeats.
    """

    program: NDArray[np.int64]
    first: NDArray[np.int64]
    length: NDArray[np.int64]
    cycle: int
    period: int


def runs_of(program: NDArray[np.int64]) -> Runs:
    """Splits the programs of the executions into runs and finds the cycle in which they end.

    The last run may be cut off, and so may the last turn of the cycle. Of several periods the one is taken that
    explains most of the trace, the shortest of equals; a period has to be seen twice. One run that goes on and on is a
    cycle of its own.
    """
    first = np.flatnonzero(np.concatenate(([True], program[1:] != program[:-1]))) if len(program) else np.zeros(0, int)
    symbols = program[first]
    length = np.diff(np.append(first, len(program)))
    period, covered = _tail_period(symbols)
    if period == 0 and len(length) and length[-1] > 1:
        period, covered = 1, 1
    return Runs(symbols, first, length, len(symbols) - covered, period)


def _tail_period(symbols: NDArray[np.int64]) -> tuple[int, int]:
    """The period of the end of the sequence, and how many symbols of the end it covers; (0, 0) if there is none."""
    best = (0, 0)
    backwards = symbols[::-1]
    # A period is a distance at which the last symbol comes again.
    for period in np.flatnonzero(backwards[1:] == backwards[:1]) + 1:
        if best[1] >= len(symbols):
            break
        same = backwards[period:] == backwards[:-period]
        covered = int(period) + (len(same) if same.all() else int(same.argmin()))
        if covered >= 2 * period and covered > best[1]:
            best = (int(period), covered)
    return best
