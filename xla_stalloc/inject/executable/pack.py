"""Offsets for blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xla_stalloc.inject.executable.problem import ALIGNMENT, Block
from xla_stalloc.packing import HeapItem
from xla_stalloc.packing import lowest as packing


def live_bytes(blocks: Sequence[Block]) -> int:
    """The most bytes that are live at once, each block rounded up to the alignment: no packing needs fewer."""
    return packing.live_bytes(_items(blocks), ALIGNMENT)


def pack(blocks: Sequence[Block]) -> Sequence[int]:
    """Offsets of the blocks, in bytes, the lowest packing that was found."""
    return packing.lowest(_items(blocks), ALIGNMENT).offsets


def _items(blocks: Sequence[Block]) -> list[HeapItem]:
    return [HeapItem(block.size, block.lives, number) for number, block in enumerate(blocks)]
