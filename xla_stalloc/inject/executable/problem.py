"""The packing problem of an executable: one item for each group of slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xla_stalloc.inject.executable import aliases, liveness
from xla_stalloc.inject.executable.liveness import Life
from xla_stalloc.inject.executable.thunks import Program

ALIGNMENT = 64
"""Bytes; what XLA:CPU aligns buffers to (`MinAlign` in xla/backends/cpu/alignment.h), and its kernels rely on."""


@dataclass(frozen=True, slots=True)
class Block:
    """Slices that move together.

    Attributes:
        begin: Where XLA put it: the multiple of `ALIGNMENT` at or below its first byte.
        size: Bytes from there to its last byte.
        lives: When its memory is taken, by number of leaf thunk.
    """

    begin: int
    size: int
    lives: Sequence[Life]


@dataclass(frozen=True)
class Layout:
    """The temp allocation as blocks.

    Attributes:
        blocks: In order of their first slices.
        block_of: Of each site of the program, the number of its block.
    """

    blocks: Sequence[Block]
    block_of: Sequence[int]


def layout(program: Program) -> Layout:
    """The blocks of a program.

    Raises:
        NotRewritableError: The program reads memory in a way that does not tell one value from another.
    """
    block_of = aliases.groups(program)
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for group, slice_ in zip(block_of, program.slices, strict=True):
        begins[group] = min(begins.get(group, slice_.offset), slice_.offset)
        ends[group] = max(ends.get(group, 0), slice_.offset + slice_.size)
    blocks = []
    for group, lives in enumerate(liveness.lives(program, block_of)):
        begin = begins[group] // ALIGNMENT * ALIGNMENT
        blocks.append(Block(begin, ends[group] - begin, lives))
    return Layout(blocks, block_of)
