"""Every kind of wrong placement is rejected."""

from __future__ import annotations

import pytest

from xla_stalloc.packing import HeapItem, PlacementError, verify_placement

ITEMS = [
    HeapItem(10, [(0, 3)], 0),
    HeapItem(10, [(3, 6)], 1),
    HeapItem(4, [(4, 5), (8, 9), (5, 6)], 2),
    HeapItem(0, [(0, 9)], 3),
]


def test_right_placement_passes():
    verify_placement(ITEMS, [0, 16, 0, 0], height=26, alignment=4)


@pytest.mark.parametrize(
    ("offsets", "height", "message"),
    [
        ([0, 16, 0], 26, "3 offsets for 4 items"),
        ([0, 18, 0, 0], 28, "item 1 is at offset 18"),
        ([0, -16, 0, 0], 26, "item 1 is at offset -16"),
        ([0, 16, 0, 0], 25, "item 1 ends at 26, above the height of 25"),
        ([0, 8, 0, 0], 26, "items 0 and 1 are both alive at time 3"),
        ([0, 16, 24, 0], 28, "items 1 and 2 are both alive at time 4"),
    ],
)
def test_wrong_placement_is_rejected(offsets, height, message):
    with pytest.raises(PlacementError, match=message):
        verify_placement(ITEMS, offsets, height, alignment=4)
