"""Best fit against a quadratic re-statement of XLA's heap."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc.packing import HeapItem, best_fit, verify_placement


@st.composite
def heaps(draw: st.DrawFn) -> tuple[list[HeapItem], int]:
    times = st.integers(0, 12)
    lives = st.lists(st.tuples(times, times).map(lambda t: (min(t), max(t))), min_size=1, max_size=3)
    sizes = st.sampled_from([0, 1, 3, 4, 5, 8, 12, 16, 17, 64])
    ids = draw(st.lists(st.integers(0, 50), unique=True, max_size=14))
    return [HeapItem(draw(sizes), draw(lives), number) for number in ids], draw(st.sampled_from([1, 4, 6, 16]))


@settings(max_examples=500, deadline=None)
@given(heaps())
def test_same_as_naive(heap):
    items, alignment = heap
    packed = best_fit(items, alignment)
    assert (packed.height, list(packed.offsets)) == naive_best_fit(items, alignment)
    verify_placement(items, packed.offsets, packed.height, alignment)


def test_larger_heap_same_as_naive():
    items = random_trace(random.Random(1), 400)
    packed = best_fit(items, 64)
    assert (packed.height, list(packed.offsets)) == naive_best_fit(items, 64)


def test_twenty_thousand_items_in_a_second():
    items = random_trace(random.Random(2), 20_000)
    begin = time.process_time()
    packed = best_fit(items, 64)
    assert time.process_time() - begin < 1
    verify_placement(items, packed.offsets, packed.height, 64)


def test_temporal_order_wins_when_it_is_lower():
    items = [HeapItem(4, [(3, 8)], 0), HeapItem(6, [(5, 7)], 1), HeapItem(3, [(0, 4)], 2), HeapItem(4, [(0, 4)], 3)]
    by_size, _ = pack_in([items[1], items[0], items[3], items[2]], alignment=1)
    by_duration, offsets = pack_in([items[0], items[3], items[2], items[1]], alignment=1)
    assert (by_size, by_duration) == (13, 11)
    assert best_fit(items, 1).offsets == tuple(offsets[number] for number in range(4))


@pytest.mark.parametrize(
    ("items", "alignment", "message"),
    [
        ([], 0, "the alignment is 0"),
        ([HeapItem(-1, [(0, 1)], 0)], 1, "item 0 has -1 bytes"),
        ([HeapItem(1, [], 0)], 1, r"item 0 has lives \[\]"),
        ([HeapItem(1, [(0, 1), (3, 2)], 0)], 1, r"item 0 has lives \[\(0, 1\), \(3, 2\)\]"),
    ],
)
def test_nonsense_is_refused(items, alignment, message):
    with pytest.raises(ValueError, match=message):
        best_fit(items, alignment)


def random_trace(rng: random.Random, count: int) -> list[HeapItem]:
    """Mostly short lives, some long ones, a few items that live twice."""
    items = []
    for number in range(count):
        start = rng.randrange(2 * count)
        lives = [(start, start + int(rng.paretovariate(0.6)) % (count // 2))]
        if rng.random() < 0.05:
            lives.append((lives[0][1] + 5, lives[0][1] + 9))
        items.append(HeapItem(rng.choice([4, 256, 1024, rng.randrange(1, 1 << 20)]), lives, number))
    return items


def naive_best_fit(items: list[HeapItem], alignment: int) -> tuple[int, list[int]]:
    def duration(item: HeapItem) -> int:
        return max(end for _, end in item.lives) - min(start for start, _ in item.lives)

    solid = [item for item in items if item.size > 0]
    orders = [
        sorted(solid, key=lambda i: (-i.size, i.lives[0][0] - i.lives[0][1], i.id)),
        sorted(solid, key=lambda i: (-duration(i), -i.size, i.id)),
    ]
    height, offsets = min((pack_in(order, alignment) for order in orders), key=lambda result: result[0])
    return height, [offsets.get(item.id, 0) for item in items]


def pack_in(order: list[HeapItem], alignment: int) -> tuple[int, dict[int, int]]:
    """Height, and offsets by id, when items go in this order, each into the smallest hole, the lowest of equals."""
    offsets: dict[int, int] = {}
    for number, item in enumerate(order):
        meets = [
            other
            for other in order[:number]
            if any(s <= e2 and s2 <= e for s, e in item.lives for s2, e2 in other.lives)
        ]
        holes, free_from = [], 0
        for begin, end in sorted((offsets[other.id], offsets[other.id] + other.size) for other in meets):
            if begin - free_from >= item.size:
                holes.append((begin - free_from, free_from))
            free_from = max(free_from, -(-end // alignment) * alignment)
        offsets[item.id] = min(holes)[1] if holes else free_from
    return max((offsets[item.id] + item.size for item in order), default=0), offsets
