"""From a serialized executable to one that needs less temporary memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xla_stalloc.inject.executable import framing, thunks
from xla_stalloc.inject.executable.errors import NotSmallerError
from xla_stalloc.inject.executable.pack import live_bytes, pack
from xla_stalloc.inject.executable.problem import Block, layout
from xla_stalloc.inject.executable.rewrite import move
from xla_stalloc.inject.executable.verify import verify

NEGLIGIBLE = 0.001
"""The part of the temp bytes for which an executable is not worth loading again."""

Packer = Callable[[Sequence[Block]], Sequence[int]]


class Repacked(NamedTuple):
    """An executable with other offsets.

    Attributes:
        data: Serialized.
        temp_bytes: The size of its temp allocation.
        live_bytes: The most bytes that are live at once in it, each block rounded up to the alignment.
    """

    data: bytes
    temp_bytes: int
    live_bytes: int


def repack(data: bytes, packer: Packer = pack, at_most: float = 1 - NEGLIGIBLE) -> Repacked:
    """Gives the temporaries of a serialized XLA:CPU executable better offsets, and verifies the result.

    Args:
        data: As jaxlib serializes an executable that has not run yet.
        packer: Finds offsets in bytes for blocks.
        at_most: The part of the temp bytes that the result may have.

    Raises:
        NotRewritableError: It is not understood well enough.
        NotSmallerError: It would not become small enough.
        RewriteError: The result did not pass the verifier.
    """
    executable = framing.read(data)
    temp = executable.temp()
    most = at_most * temp.size
    program = thunks.program(executable.thunks, temp.index)
    blocks = layout(program)
    bound = live_bytes(blocks.blocks)
    if bound > most:
        raise NotSmallerError("XLA's own offsets are as good as the best, or nearly so", bound)
    move(executable, program, blocks, packer(blocks.blocks))
    if temp.size > most:
        raise NotSmallerError("no better offsets than XLA's own were found", bound)
    rewritten = framing.write(executable)
    verify(data, rewritten)
    return Repacked(rewritten, temp.size, bound)
