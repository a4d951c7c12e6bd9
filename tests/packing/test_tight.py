"""The exact packer against brute force, instances whose optimum is known, and a clique-by-clique check."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc._core import Verdict
from xla_stalloc.packing import HeapItem, verify_placement
from xla_stalloc.packing.tight import MOST_ITEMS, TightPacker

Instance = tuple[np.ndarray, np.ndarray, np.ndarray]


@st.composite
def tiny_instances(draw: st.DrawFn) -> Instance:
    times = st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda t: (t[0], t[0] + t[1]))
    sizes = st.sampled_from([0, 1, 2, 3, 4, 5, 7])
    items = draw(st.lists(st.tuples(times, sizes), min_size=1, max_size=7))
    return arrays([(lower, upper, size) for (lower, upper), size in items])


@settings(max_examples=400, deadline=None)
@given(tiny_instances(), st.sampled_from([1, 2, 3]), st.integers(0, 5))
def test_lowest_is_what_brute_force_finds(instance, alignment, seed):
    optimum = brute_force(instance, alignment)
    lowest = TightPacker(*instance, alignment, seed).lowest(work=50_000_000)
    check(instance, lowest.offsets, lowest.height, alignment)
    assert lowest.lower_bound <= optimum
    if alignment == 1:
        assert lowest.height == lowest.lower_bound == optimum
    else:  # what is padded may still be proven a few bytes short of the height
        assert lowest.height - optimum < alignment


@settings(max_examples=300, deadline=None)
@given(tiny_instances(), st.sampled_from([1, 2, 4]), st.integers(-2, 3), st.integers(0, 5))
def test_verdicts_are_what_brute_force_says(instance, alignment, more, seed):
    optimum = brute_force(instance, alignment)
    capacity = max(optimum + more, 0)
    fit = TightPacker(*instance, alignment, seed).fit(capacity, work=50_000_000)
    if fit.verdict is Verdict.FITS:
        check(instance, fit.offsets, capacity, alignment)
    elif fit.verdict is Verdict.INFEASIBLE:
        assert capacity < optimum
    else:
        assert alignment > 1  # a capacity between multiples of it
    if alignment == 1:
        assert (fit.verdict is Verdict.FITS) == (capacity >= optimum)


@pytest.mark.parametrize("seed", [65, 270, 625, 666, 885, 960, 1130, 1225, 1856, 1930, 2132])
def test_proves_that_a_load_cannot_be_packed(seed):
    """Rare: about one in a hundred of these instances, full at all times, does not fit its load."""
    instance = full_heap(np.random.default_rng(seed))
    packer = TightPacker(*instance, seed=seed)
    load = packer.lower_bound
    assert packer.fit(load).verdict is Verdict.INFEASIBLE
    assert not can_fit(instance, load)
    lowest = packer.lowest()
    assert lowest.height == lowest.lower_bound > load
    check(instance, lowest.offsets, lowest.height, 1)
    assert lowest.height == load + 1 or not can_fit(instance, lowest.height - 1)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alignment", [1, 64])
def test_reassembles_a_rectangle(seed, alignment):
    instance, height = cut_rectangle(np.random.default_rng(seed), pieces=40, alignment=alignment, drop=seed % 3)
    fit = TightPacker(*instance, alignment, seed).fit(height, work=2_000_000_000)
    assert fit.verdict is Verdict.FITS
    check(instance, fit.offsets, height, alignment)


@pytest.mark.parametrize("seed", range(4))
def test_mixed_alignments_are_kept(seed):
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 30, 25)
    instance = (lower, lower + rng.integers(1, 9, 25), rng.integers(1, 500, 25))
    alignments = rng.choice([8, 16, 64], 25)
    lowest = TightPacker(*instance, alignments, seed).lowest(work=20_000_000)
    assert (lowest.offsets % alignments == 0).all()
    check(instance, lowest.offsets, lowest.height, 8)
    assert lowest.lower_bound <= lowest.height


def test_recurses_as_deep_as_there_are_items():
    """A chain of lives that nothing can be cut out of, in a thread, whose stack is no larger than the main one's."""
    numbers = np.arange(MOST_ITEMS)
    sizes = np.random.default_rng(0).integers(1, 99, MOST_ITEMS)
    packer = TightPacker(numbers, numbers + 300, sizes)
    found = []
    thread = threading.Thread(target=lambda: found.append(packer.fit(packer.lower_bound + 2000, seconds=2)))
    thread.start()
    thread.join()
    assert found[0].verdict is not Verdict.INFEASIBLE


def test_same_seed_and_work_same_offsets():
    instance, height = cut_rectangle(np.random.default_rng(5), pieces=60, alignment=1, drop=2)
    first, again = (TightPacker(*instance, seed=3).lowest(work=30_000_000) for _ in range(2))
    assert first.height == again.height and (first.offsets == again.offsets).all()
    rows = np.random.default_rng(0).permutation(len(instance[0]))
    mixed = tuple(column[rows] for column in instance)
    lowest = TightPacker(*mixed, seed=3).lowest(floor=height, work=2_000_000_000)
    assert lowest.height <= height  # whatever the order of the rows


def test_capacity_below_the_load_is_infeasible_at_once():
    packer = TightPacker([0, 1], [2, 3], [5, 6])
    assert packer.lower_bound == 11
    assert packer.fit(10).verdict is Verdict.INFEASIBLE
    assert packer.work == 0


@pytest.mark.parametrize("size", [[], [0, 0]])
def test_nothing_to_place(size):
    packer = TightPacker(range(len(size)), range(1, len(size) + 1), size)
    assert packer.fit(0).verdict is Verdict.FITS
    lowest = packer.lowest()
    assert (lowest.height, lowest.lower_bound, list(lowest.offsets)) == (0, 0, size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [1, 2], [1]), "the shapes"),
        (([0, 1], [1, 1], [1, 1]), "item 1 has a lifetime that ends before it starts"),
        (([0], [1], [-1]), "item 0 has a negative size"),
        (([0], [1], [1], 0), "item 0 has an alignment that is not positive"),
        (([0, 0], [1, 1], [1, 1], [4, 6]), "item 0 has an alignment of 4: it does not divide another, 6"),
        (([0, 0], [1, 1], [1 << 61, 1 << 61]), "bytes in all"),
        (([0] * (MOST_ITEMS + 1), [1] * (MOST_ITEMS + 1), [1] * (MOST_ITEMS + 1)), "at most 12000"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TightPacker(*arguments)


def test_stops_at_its_time_and_at_ctrl_c():
    packer = TightPacker(*hopeless())
    begin = time.monotonic()
    assert packer.fit(packer.lower_bound, seconds=0.1).verdict is Verdict.UNKNOWN
    assert time.monotonic() - begin < 5
    with interrupted_soon(), pytest.raises(KeyboardInterrupt):
        packer.fit(packer.lower_bound)
    with interrupted_soon():
        lowest = packer.lowest()
    assert lowest.interrupted
    check(hopeless(), lowest.offsets, lowest.height, 1)


class interrupted_soon:
    """Sends this process what Ctrl-C sends, 0.2 seconds later."""

    def __enter__(self) -> None:
        self._timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.join()


def hopeless() -> Instance:
    """Full at all times, with odd sizes: nobody packs it at its load, nobody proves that in a while."""
    return full_heap(np.random.default_rng(1), load=99_991, width=12, steps=60)


def arrays(items: list[tuple[int, int, int]]) -> Instance:
    lower, upper, size = np.array(items, np.int64).T.copy()
    return lower, upper, size


def check(instance: Instance, offsets: np.ndarray, height: int, alignment: int) -> None:
    lower, upper, size = (column.tolist() for column in instance)
    items = [HeapItem(s, [(a, b - 1)], i) for i, (a, b, s) in enumerate(zip(lower, upper, size, strict=True))]
    verify_placement(items, offsets.tolist(), height, alignment)


def brute_force(instance: Instance, alignment: int) -> int:
    """Least height: every order of the items, each as low as it can lie above those before it."""
    items = [item for item in zip(*(column.tolist() for column in instance), strict=True) if item[2]]
    best = sum(size + alignment for *_, size in items)
    for order in set(itertools.permutations(items)):
        tops: list[tuple[int, int, int]] = []
        height = 0
        for lower, upper, size in order:
            floor = max((top for a, b, top in tops if a < upper and lower < b), default=0)
            top = -(-floor // alignment) * alignment + size
            height = max(height, top)
            if height >= best:
                break
            tops.append((lower, upper, top))
        else:
            best = height
    return best


def can_fit(instance: Instance, capacity: int) -> bool:
    """Every offset for every item, by birth."""
    items = sorted(zip(*(column.tolist() for column in instance), strict=True), key=lambda item: (item[0], -item[2]))

    def place(number: int, placed: list[tuple[int, int, int, int]]) -> bool:
        if number == len(items):
            return True
        lower, upper, size = items[number]
        taken = [(begin, end) for a, b, begin, end in placed if a < upper and lower < b]
        return any(
            place(number + 1, [*placed, (lower, upper, offset, offset + size)])
            for offset in range(capacity - size + 1)
            if all(end <= offset or offset + size <= begin for begin, end in taken)
        )

    return place(0, [])


def full_heap(rng: np.random.Generator, load: int = 14, width: int = 5, steps: int = 8) -> Instance:
    """About ``width`` items with ``load`` bytes; at each step, two or three die and others take all of their bytes."""

    def cut(total: int, parts: int) -> list[int]:
        parts = min(total, max(1, parts))
        cuts = sorted(rng.choice(np.arange(1, total), parts - 1, replace=False).tolist()) if parts > 1 else []
        return [end - begin for begin, end in zip([0, *cuts], [*cuts, total], strict=True)]

    live, items = [(0, size) for size in cut(load, width)], []
    for step in range(1, steps):
        rng.shuffle(live)
        dying = int(rng.integers(2, 4))
        dead, live = live[:dying], live[dying:]
        items += [(birth, step, size) for birth, size in dead]
        freed = sum(size for _, size in dead)
        live += [(step, size) for size in cut(freed, width - len(live) + int(rng.integers(-1, 2)))]
    return arrays(items + [(birth, steps, size) for birth, size in live])


def cut_rectangle(rng: np.random.Generator, pieces: int, alignment: int, drop: int) -> tuple[Instance, int]:
    """A rectangle cut at random, across or along, some pieces dropped, the others in random order; its height."""
    width, height = 1_000, 4_096 * alignment
    parts = [(0, width, 0, height)]
    while len(parts) < pieces:
        areas = np.array([(b - a) * (d - c) for a, b, c, d in parts], float)
        a, b, c, d = parts.pop(int(rng.choice(len(parts), p=areas / areas.sum())))
        rows = (d - c) // alignment
        if rng.random() < 0.5 and b - a > 1:
            middle = int(rng.integers(a + 1, b))
            parts += [(a, middle, c, d), (middle, b, c, d)]
        elif rows > 1:
            middle = c + alignment * int(rng.integers(1, rows))
            parts += [(a, b, c, middle), (a, b, middle, d)]
        else:
            parts.append((a, b, c, d))
    order = rng.permutation(len(parts))[drop:]
    items = [(parts[i][0], parts[i][1], parts[i][3] - parts[i][2] - int(rng.integers(alignment))) for i in order]
    return arrays(items), height
