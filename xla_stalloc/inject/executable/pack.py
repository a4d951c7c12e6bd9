"""Offsets for blocks: XLA's best fit and, where that leaves holes, first fit in many orders."""

from __future__ import annotations

from collections.abc import Sequence

from xla_stalloc.inject.executable.problem import ALIGNMENT, Block
from xla_stalloc.packing import HeapItem, best_fit, first_fit


def live_bytes(blocks: Sequence[Block]) -> int:
    """The most bytes that are live at once, each block rounded up to the alignment: no packing needs fewer."""
    changes: dict[int, int] = {}
    for block in blocks:
        for first, last in block.lives:
            changes[first] = changes.get(first, 0) + _padded(block)
            changes[last + 1] = changes.get(last + 1, 0) - _padded(block)
    most = live = 0
    for moment in sorted(changes):
        live += changes[moment]
        most = max(most, live)
    return most


def pack(blocks: Sequence[Block]) -> Sequence[int]:
    """Offsets of the blocks, in bytes, the lowest packing that was found."""
    items = [HeapItem(block.size, block.lives, number) for number, block in enumerate(blocks)]
    best, bound = best_fit(items, ALIGNMENT), live_bytes(blocks)
    if best.height > bound:
        found = first_fit(items, ALIGNMENT, bound)
        if found is not None and found.height < best.height:
            return found.offsets
    return best.offsets


def _padded(block: Block) -> int:
    return -(-block.size // ALIGNMENT) * ALIGNMENT
