"""XLA's own packing of a heap, emulated exactly: what buffer assignment will do with an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xla_stalloc import _core


@dataclass(frozen=True, slots=True)
class HeapItem:
    """Bytes that keep one offset over one or several lives."""

    size: int
    """Bytes."""
    lives: Sequence[tuple[int, int]]
    """First and last time, both inclusive, of the buffer itself and then of each one colocated with it."""
    id: int
    """XLA breaks ties by it: the id of the buffer's value."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Where each item went."""

    height: int
    """Bytes of the whole heap."""
    offsets: tuple[int, ...]
    """Of each item, in bytes."""


def best_fit(items: Sequence[HeapItem], alignment: int) -> Packed:
    """The offsets that XLA's GlobalDecreasingSizeBestFitHeap gives: its spatial or its temporal order, the lower one.

    An empty item gets offset 0, as in XLA.

    Args:
        items: what is on the heap, in any order.
        alignment: bytes that every offset is a multiple of.

    Raises:
        ValueError: an item has a negative size, no life, or a life that ends before it starts; or the alignment is not
            positive.
    """
    heap = arrays(items, alignment)
    height, offsets = _core.best_fit(
        heap["sizes"],
        heap["interval_offsets"],
        heap["starts"],
        heap["ends"],
        _int64([item.id for item in items]),
        alignment,
    )
    return Packed(height, tuple(offsets.tolist()))


def arrays(items: Sequence[HeapItem], alignment: int) -> dict[str, NDArray[np.int64]]:
    """The items as the kernels take them.

    Raises:
        ValueError: as `best_fit`.
    """
    if alignment <= 0:
        raise ValueError(f"the alignment is {alignment} bytes: it must be positive")
    for number, item in enumerate(items):
        if item.size < 0:
            raise ValueError(f"item {number} has {item.size} bytes: a size cannot be negative")
        if not item.lives or any(start > end for start, end in item.lives):
            raise ValueError(f"item {number} has lives {list(item.lives)}: each starts before it ends")
    lives = [life for item in items for life in item.lives]
    return {
        "sizes": _int64([item.size for item in items]),
        "interval_offsets": _int64(np.cumsum([0, *(len(item.lives) for item in items)])),
        "starts": _int64([start for start, _ in lives]),
        "ends": _int64([end for _, end in lives]),
    }


def _int64(numbers: ArrayLike) -> NDArray[np.int64]:
    return np.asarray(numbers, dtype=np.int64)
