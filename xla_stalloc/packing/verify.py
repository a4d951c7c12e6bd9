"""Is this placement right? In plain Python, sharing no code with the packers."""

from __future__ import annotations

from collections.abc import Sequence

from xla_stalloc.packing.best_fit import HeapItem


class PlacementError(ValueError):
    """A placement in which items would overwrite each other, or one lies where it may not."""


def verify_placement(items: Sequence[HeapItem], offsets: Sequence[int], height: int, alignment: int) -> None:
    """Check that the items can live at these offsets.

    Raises:
        PlacementError: an offset is missing, negative or not aligned, an item ends above the height, or two items share
            both a byte and a time.
    """
    if len(offsets) != len(items):
        raise PlacementError(f"{len(offsets)} offsets for {len(items)} items: give one for each item")
    for number, (item, offset) in enumerate(zip(items, offsets, strict=True)):
        if offset < 0 or offset % alignment:
            raise PlacementError(f"item {number} is at offset {offset}: not a multiple of {alignment} from 0 up")
        if offset + item.size > height:
            raise PlacementError(f"item {number} ends at {offset + item.size}, above the height of {height}")
    _check_overlap(items, offsets)


def _check_overlap(items: Sequence[HeapItem], offsets: Sequence[int]) -> None:
    """Sweep over time; at each birth, nothing alive may reach into the newcomer's bytes."""
    events = [
        (time, dies, number)
        for number, item in enumerate(items)
        if item.size > 0
        for start, end in _merged(item.lives)
        for time, dies in ((start, False), (end, True))
    ]
    alive: set[int] = set()
    for time, dies, number in sorted(events):  # ends are inclusive: births at a time come before its deaths
        if dies:
            alive.remove(number)
            continue
        begin, end = offsets[number], offsets[number] + items[number].size
        for other in alive:
            if offsets[other] < end and begin < offsets[other] + items[other].size:
                raise PlacementError(
                    f"items {other} and {number} are both alive at time {time}, at the bytes "
                    f"{offsets[other]} to {offsets[other] + items[other].size} and {begin} to {end}"
                )
        alive.add(number)


def _merged(lives: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times as lives that do not meet: lives of one item may overlap each other."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(lives):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
