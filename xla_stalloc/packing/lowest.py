"""The lowest packing that is quick to find: XLA's best fit and, where that leaves holes, first fit in many orders."""

from __future__ import annotations

from collections.abc import Sequence

from xla_stalloc.packing.best_fit import HeapItem, Packed, best_fit
from xla_stalloc.packing.first_fit import first_fit


def live_bytes(items: Sequence[HeapItem], alignment: int) -> int:
    """The most bytes that are live at once, each item rounded up to the alignment: no packing needs fewer."""
    changes: dict[int, int] = {}
    for item in items:
        padded = -(-item.size // alignment) * alignment
        for first, last in item.lives:
            changes[first] = changes.get(first, 0) + padded
            changes[last + 1] = changes.get(last + 1, 0) - padded
    most = live = 0
    for moment in sorted(changes):
        live += changes[moment]
        most = max(most, live)
    return most


def lowest(items: Sequence[HeapItem], alignment: int) -> Packed:
    """The lower one of both packings.

    Args:
        items: what is on the heap, in any order.
        alignment: bytes that every offset is a multiple of.

    Raises:
        ValueError: as `best_fit`.
    """
    best, bound = best_fit(items, alignment), live_bytes(items, alignment)
    if best.height > bound:
        found = first_fit(items, alignment, bound)
        if found is not None and found.height < best.height:
            return found
    return best
