"""What is to be packed: buffers, how long they live, and where they may lie."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_BYTES = 1 << 62
"""Of all buffers together, padded to their alignment, and of every offset, size and time."""


@dataclass(frozen=True, slots=True)
class Heap:
    """One contiguous piece of memory."""

    space: int = 0
    """The memory space that it is in."""
    capacity: int | None = None
    """Bytes; None if it may grow as it has to."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes that no buffer may use for a while."""

    begin: int
    """First byte."""
    end: int
    """First byte behind it."""
    lower: int = 0
    """Time from which on they may not be used."""
    upper: int = MOST_BYTES - 1
    """Time from which on they may be used again."""
    heap: int = 0
    """Number of the heap."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Buffers to be packed, n of them. Takes any whole numbers, one for each buffer or one for all; keeps int64[n].

    Attributes:
        lower: time from which on each buffer is live.
        upper: time from which on it is not; above lower.
        size: bytes.
        alignment: bytes that its offset is a multiple of; one for each buffer, or one for all.
        group: buffers with one number share one offset, and the bytes there (XLA calls them colocated); -1: on its own.
        pinned: offset that a buffer has to have, in bytes; -1: any.
        space: memory space of each buffer.
        heaps: where buffers may go; each memory space that has none here has one that grows. A space with several
            fills one after the other.
        forbidden: bytes that are not to be used.
        same_slice_when_touching: XLA's rule, as a buffer is read in the moment in which the next is written: one
            that is born when another dies has exactly its bytes or none of them. Solvers keep the two apart.
    """

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    size: NDArray[np.int64]
    alignment: NDArray[np.int64] = field(default_factory=lambda: np.array(1))
    group: NDArray[np.int64] = field(default_factory=lambda: np.array(-1))
    pinned: NDArray[np.int64] = field(default_factory=lambda: np.array(-1))
    space: NDArray[np.int64] = field(default_factory=lambda: np.array(0))
    heaps: tuple[Heap, ...] = ()
    forbidden: tuple[Region, ...] = ()
    same_slice_when_touching: bool = False

    def __post_init__(self) -> None:
        """Check everything that solvers rely on.

        Raises:
            ValueError: what is wrong, with the number of the buffer, heap or region.
        """
        count = np.shape(self.lower)
        if len(count) != 1:
            raise ValueError(f"lower has the shape {count}: it has to have one number for each buffer")
        for name in ("lower", "upper", "size", "alignment", "group", "pinned", "space"):
            object.__setattr__(self, name, _column(name, getattr(self, name), count))
        for name, least in (("lower", -MOST_BYTES), ("size", 0), ("alignment", 1), ("group", -1), ("pinned", -1)):
            self._refuse(getattr(self, name) < least, f"has a {name} of", name)
            self._refuse(getattr(self, name) >= MOST_BYTES, f"has a {name} of", name)
        self._refuse(self.upper <= self.lower, "dies before it is born, or at once, at", "upper")
        self._refuse(self.upper >= MOST_BYTES, "has an upper of", "upper")
        self._refuse((self.pinned >= 0) & (self.pinned % self.alignment != 0), "is not aligned where it is pinned, at")
        if sum(int(part.sum()) for part in (self.size // 2**31, self.alignment // 2**31)) >= 2**31:
            raise ValueError(f"the buffers have more than {MOST_BYTES} bytes together")
        spaces = set(self.space.tolist()) - {heap.space for heap in self.heaps}
        object.__setattr__(self, "heaps", (*self.heaps, *(Heap(space) for space in sorted(spaces))) or (Heap(),))
        for number, region in enumerate(self.forbidden):
            if not 0 <= region.heap < len(self.heaps):
                raise ValueError(f"forbidden region {number} is on heap {region.heap}: there are {len(self.heaps)}")
            if not 0 <= region.begin <= region.end < MOST_BYTES or region.lower >= region.upper:
                raise ValueError(f"forbidden region {number} makes no sense: {region}")

    def _refuse(self, wrong: NDArray[np.bool_], what: str, name: str = "pinned") -> None:
        if wrong.any():
            buffer = int(wrong.argmax())
            raise ValueError(f"buffer {buffer} {what} {getattr(self, name)[buffer]}")


def _column(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    column = np.asarray(values)
    if column.size and not np.issubdtype(column.dtype, np.integer):
        raise ValueError(f"{name} has the type {column.dtype}: it has to be whole numbers")
    if column.shape not in (shape, ()):
        raise ValueError(f"{name} has the shape {column.shape}: expected {shape}, like lower")
    return np.ascontiguousarray(np.broadcast_to(column, shape), np.int64)


def max_load(lower: NDArray[np.int64], upper: NDArray[np.int64], size: NDArray[np.int64]) -> int:
    """Most that is live at once, in bytes."""
    times = np.concatenate([upper, lower])  # at the same time, what dies goes first
    changes = np.concatenate([-size, size])
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0))
