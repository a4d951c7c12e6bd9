"""What is lost inside the memory of a program, at the moment when the most temporary bytes are live."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.hlo import Module
from xla_stalloc.lifetimes import Assignment, Lifetimes
from xla_stalloc.report.map.allocations import from_emulation, from_xla
from xla_stalloc.report.map.boxes import Int64Array, MemoryMap, draw


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of a program's memory that hold nothing at the peak, and the blocks that it needs in one piece.

    Attributes:
        padding_bytes: between the end of what is live and the end of its memory: alignment, and tiles of layouts.
        hole_bytes: of the temp allocation, in no buffer that is live.
        largest_hole_bytes: the largest range of them in one piece.
        largest_block_bytes: the largest allocation of the program, which has to be there in one piece.
    """

    padding_bytes: int
    hole_bytes: int
    largest_hole_bytes: int
    largest_block_bytes: int


def space(module: Module, lifetimes: Lifetimes, assignment: Assignment) -> Space:
    """What is lost, by XLA's own offsets where the module has them, else by the emulated ones."""
    if module.buffer_assignment is not None:
        allocations = from_xla(module.buffer_assignment, lifetimes)
    else:
        allocations = from_emulation(lifetimes, {0: assignment})
    in_main_memory = [allocation for allocation in allocations if not allocation.band.startswith("memory space")]
    drawn = draw(lifetimes, in_main_memory, "stock", "")
    time = drawn.peak_time
    live = (drawn.start <= time) & (time < np.maximum(drawn.end, drawn.start + 1))
    holes = _holes(drawn, live & (drawn.band == 0))
    return Space(
        padding_bytes=int((drawn.size[live] - drawn.bytes[live]).sum()),
        hole_bytes=int(holes.sum()),
        largest_hole_bytes=int(holes.max(initial=0)),
        largest_block_bytes=max((allocation.size for allocation in in_main_memory), default=0),
    )


def _holes(drawn: MemoryMap, live: NDArray[np.bool_]) -> Int64Array:
    """Sizes of the ranges of the temp allocation that no live box covers."""
    order = np.argsort(drawn.address[live], kind="stable")
    begin, end = drawn.address[live][order], (drawn.address[live] + drawn.size[live])[order]
    covered = np.maximum.accumulate(np.concatenate([np.zeros(1, np.int64), end]))
    free: Int64Array = np.append(begin, drawn.temp_bytes) - covered
    return np.maximum(free, 0, out=free)
