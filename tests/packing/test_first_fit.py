"""First fit in many orders: right, repeatable, and lower than best fit where that leaves holes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc.packing import HeapItem, best_fit, first_fit, verify_placement


def most_live(items, alignment):
    padded = [-(-item.size // alignment) * alignment for item in items]
    times = {start for item in items for start, _ in item.lives}
    return max(
        (
            sum(p for item, p in zip(items, padded, strict=True) if any(a <= time <= b for a, b in item.lives))
            for time in times
        ),
        default=0,
    )


@st.composite
def heaps(draw):
    items = []
    for number in range(draw(st.integers(0, 12))):
        times = sorted(draw(st.lists(st.integers(0, 20), min_size=2, max_size=4, unique=True)))
        lives = list(zip(times[::2], times[1::2], strict=False))
        items.append(HeapItem(draw(st.integers(0, 9)), lives, number))
    return items, draw(st.sampled_from([1, 4]))


@given(heaps(), st.integers(0, 3))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_packings_are_right_and_repeatable(heap, seed):
    items, alignment = heap
    bound = most_live(items, alignment)
    packed = first_fit(items, alignment, bound, work=20_000, seed=seed)
    assert packed is not None
    verify_placement(items, packed.offsets, packed.height, alignment)
    assert packed == first_fit(items, alignment, bound, work=20_000, seed=seed)


def test_holes_are_closed():
    reached = 0
    for seed in range(20):
        rng = random.Random(seed)
        items = []
        for number in range(60):
            start = rng.randint(0, 80)
            items.append(HeapItem(rng.randint(1, 2000), [(start, start + rng.randint(0, 12))], number))
        bound = most_live(items, 64)
        packed = first_fit(items, 64, bound, work=2_000_000)
        assert packed is not None and bound - 64 < packed.height
        assert packed.height <= max(bound, best_fit(items, 64).height)
        reached += packed.height <= bound
    assert reached > 10


def test_too_many_neighbours_for_the_work():
    items = [HeapItem(1, [(0, 1)], number) for number in range(100)]
    assert first_fit(items, 1, 100, work=10) is None


def test_nothing_to_pack():
    packed = first_fit([], 64, 0)
    assert packed is not None and packed.offsets == ()


def test_bad_items_are_named():
    with pytest.raises(ValueError, match="item 0 has -1 bytes"):
        first_fit([HeapItem(-1, [(0, 1)], 0)], 1, 0)
