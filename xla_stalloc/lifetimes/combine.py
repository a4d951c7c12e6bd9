"""How XLA lays its temporary allocations end to end: the packed heap and the tables of tuples.

BufferAssignment::CombineTempAllocations (xla/service/buffer_assignment.cc) moves them behind all other allocations
with std::partition, which is not stable; its order decides which padding is saved.
"""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def partition(items: Iterable[T | None]) -> list[T]:
    """The items that are not None, in the order in which std::partition leaves them behind the Nones."""
    order = list(items)
    first, last = 0, len(order)
    while True:
        while first < last and order[first] is None:
            first += 1
        last -= 1
        while first < last and order[last] is not None:
            last -= 1
        if first >= last:
            return [item for item in order if item is not None]
        order[first], order[last] = order[last], order[first]
        first += 1


def end_to_end(sizes: Iterable[int], alignment: int) -> tuple[list[int], int]:
    """Offsets in bytes of allocations that are laid one behind the other, and the size of the whole."""
    offsets, height = [], 0
    for size in sizes:
        offsets.append(-(-height // alignment) * alignment)
        height = offsets[-1] + size
    return offsets, height
