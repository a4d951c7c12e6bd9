"""Writes new offsets into an executable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from xla_stalloc.inject.executable.framing import Executable
from xla_stalloc.inject.executable.problem import ALIGNMENT, Layout
from xla_stalloc.inject.executable.thunks import Program


def move(executable: Executable, program: Program, layout: Layout, offsets: Sequence[int]) -> None:
    """Moves every block of the temp allocation, and makes the allocation as large as that takes.

    The thunks alone decide where values lie. What the buffer assignment says feeds XLA's reports and is checked against
    the size: it follows where one block only was at the place of a value, and elsewhere is brought within bounds.

    Args:
        executable: Is changed.
        program: Its thunks, whose messages are changed.
        layout: The blocks of the program.
        offsets: Of each block, in bytes.
    """
    temp = executable.temp()
    ends = [offset + block.size for offset, block in zip(offsets, layout.blocks, strict=True)]
    # A value that no thunk touches still has to fit.
    temp.size = max([*ends, *(value.size for value in temp.assigned)], default=0)

    at: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for slice_, block in zip(program.slices, layout.block_of, strict=True):
        at[slice_.offset, slice_.size].add(block)
    for value in temp.assigned:
        blocks = at.get((value.offset, value.size), ())
        if len(blocks) == 1:
            (block,) = blocks
            value.offset += offsets[block] - layout.blocks[block].begin
        else:
            value.offset = min(value.offset, (temp.size - value.size) // ALIGNMENT * ALIGNMENT)

    for slice_, block in zip(program.slices, layout.block_of, strict=True):
        slice_.offset += offsets[block] - layout.blocks[block].begin
    for slice_ in program.empty:
        slice_.offset = 0
