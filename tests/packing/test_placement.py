"""The verifier of placements against a naive one, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc.packing import Heap, PlacementError, Problem, Region, verify

Placed = tuple[Problem, np.ndarray, np.ndarray]


@st.composite
def placed_buffers(draw: st.DrawFn) -> Placed:
    """Few times and few bytes, so that about half of them are wrong."""
    count = draw(st.integers(0, 6))

    def column(least: int, most: int) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=count, max_size=count))

    lower = np.array(column(0, 6), np.int64)
    problem = Problem(
        lower,
        lower + column(1, 3),
        np.array(column(0, 3), np.int64),
        alignment=np.array(column(1, 2)),
        group=np.array([draw(st.sampled_from([-1, -1, 0, 1])) for _ in range(count)]),
        pinned=np.full(count, -1),
        heaps=(Heap(), Heap()),
        forbidden=tuple(draw(st.lists(st.sampled_from([Region(2, 4, 1, 3), Region(0, 1, heap=1)]), max_size=1))),
        same_slice_when_touching=draw(st.booleans()),
    )
    offsets = np.array(column(0, 9), np.int64) * problem.alignment
    for number in (0, 1):
        members = np.flatnonzero(problem.group == number)
        if draw(st.integers(0, 4)) and len(members):
            offsets[members] = offsets[members[0]] * 2
    heap = np.array(column(0, 1), np.int64) if draw(st.booleans()) else np.zeros(count, np.int64)
    return problem, offsets, heap


@settings(max_examples=1500, deadline=None)
@given(placed_buffers())
def test_says_what_a_naive_verifier_says(placed):
    problem, offsets, heap = placed
    try:
        verify(problem, offsets, heap, (99, 99))
        right = True
    except PlacementError:
        right = False
    assert right == naive(problem, offsets, heap)


def naive(problem: Problem, offsets: np.ndarray, heap: np.ndarray) -> bool:
    """Every buffer, and every pair, against the rules as they are written."""
    rows = [i for i in range(len(offsets)) if problem.size[i] > 0]
    spans = {i: set(range(offsets[i], offsets[i] + problem.size[i])) for i in rows}
    times = {i: set(range(problem.lower[i], problem.upper[i])) for i in rows}
    for i in rows:
        if offsets[i] % problem.alignment[i]:
            return False
        for region in problem.forbidden:
            now = any(region.lower <= time < region.upper for time in times[i])
            if region.heap == heap[i] and now and any(region.begin <= byte < region.end for byte in spans[i]):
                return False
        for j in rows:
            grouped = i != j and problem.group[i] == problem.group[j] >= 0
            if grouped and (offsets[i], heap[i]) != (offsets[j], heap[j]):
                return False
            if i == j or grouped or heap[i] != heap[j] or not spans[i] & spans[j]:
                continue
            if times[i] & times[j]:
                return False
            touching = problem.upper[i] == problem.lower[j]
            if problem.same_slice_when_touching and touching and spans[i] != spans[j]:
                return False
    return True


RIGHT = Problem(
    np.array([0, 2, 0]),
    np.array([2, 4, 4]),
    np.array([8, 8, 4]),
    alignment=np.array(4),
    pinned=np.array([-1, -1, 8]),
    heaps=(Heap(), Heap(space=1)),
    forbidden=(Region(20, 30, heap=0),),
)


@pytest.mark.parametrize(
    ("change", "offsets", "heap", "heights", "message"),
    [
        ({}, [0, 0], [0, 0, 0], (12, 0), "2 offsets, 3 heaps"),
        ({}, [0, 0, 8], [0, 0, 2], (12, 0), "the heaps are numbered from 0 to 1"),
        ({}, [0, 0, 8], [0, 0, 1], (12, 12), "buffer 2 is in another memory space"),
        ({}, [-4, 0, 8], [0, 0, 0], (12, 0), "buffer 0 has a negative offset"),
        ({}, [0, 2, 8], [0, 0, 0], (12, 0), "buffer 1 is not aligned"),
        ({}, [0, 0, 12], [0, 0, 0], (16, 0), "buffer 2 is not where it is pinned"),
        ({}, [0, 0, 8], [0, 0, 0], (11, 0), "buffer 2 ends above the height"),
        ({}, [0, 16, 8], [0, 0, 0], (32, 0), "buffer 1 is in the forbidden region 0"),
        (
            {},
            [0, 4, 8],
            [0, 0, 0],
            (12, 0),
            "buffers 2 and 1 are both alive at time 2, at the bytes 8 to 12 and 4 to 12",
        ),
        ({"group": np.array([7, 7, -1])}, [0, 12, 8], [0, 0, 0], (20, 0), "buffers 0 and 1 are of one group"),
        (
            {"size": np.array([4, 8, 4]), "same_slice_when_touching": True},
            [0, 0, 8],
            [0] * 3,
            (12, 0),
            "buffers 0 and 1",
        ),
    ],
)
def test_wrong_placements_are_rejected(change, offsets, heap, heights, message):
    verify(RIGHT, np.array([0, 0, 8]), np.zeros(3, np.int64), (12, 0))
    with pytest.raises(PlacementError, match=message):
        verify(replace(RIGHT, **change), np.array(offsets), np.array(heap), heights)


def test_touching_buffers_may_have_the_same_slice():
    verify(replace(RIGHT, same_slice_when_touching=True), np.array([0, 0, 8]), np.zeros(3, np.int64), (12, 0))


def test_is_quick_on_many_buffers():
    """A hundred thousand that are all alive at once: looking at pairs would take minutes."""
    count = 100_000
    problem = Problem(np.zeros(count, np.int64), np.arange(1, count + 1), np.ones(count, np.int64))
    verify(problem, np.random.default_rng(0).permutation(count), np.zeros(count, np.int64), (count,))
