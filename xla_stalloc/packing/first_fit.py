"""First fit in many orders, each repaired by what it leads to: closes most holes that best fit leaves."""

from __future__ import annotations

from collections.abc import Sequence

from xla_stalloc import _core
from xla_stalloc.packing.best_fit import HeapItem, Packed, arrays

DEFAULT_WORK = 30_000_000
"""Looks at a neighbour: some tenths of a second."""


def first_fit(
    items: Sequence[HeapItem], alignment: int, target: int, work: int = DEFAULT_WORK, seed: int = 0
) -> Packed | None:
    """The lowest packing found; None if the items overlap so much in time that not even one pass is worth its time.

    Deterministic: the same items, work and seed give the same packing.

    Args:
        items: what is on the heap, in any order.
        alignment: bytes that every offset is a multiple of.
        target: bytes; a packing of this height is low enough.
        work: effort, in looks at a neighbour.
        seed: of the random part.

    Raises:
        ValueError: as `best_fit`.
    """
    height, offsets = _core.first_fit(
        **arrays(items, alignment), alignment=alignment, target=target, work=work, seed=seed
    )
    return Packed(height, tuple(offsets.tolist())) if len(offsets) == len(items) else None
