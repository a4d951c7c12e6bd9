"""Packing whole problems: the optimum of small ones, never above what simple packers find, the same under symmetry."""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import signal
import threading
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc._core import OrderedFit, Sections, Sweep, SweepRule
from xla_stalloc.packing import Heap, HeapItem, Problem, Region, best_fit, solve, verify


@st.composite
def small_problems(draw: st.DrawFn, constrained: bool) -> Problem:
    count = draw(st.integers(1, 6))

    def column(least: int, most: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)), np.int64)

    lower = column(0, 6)
    columns = (lower, lower + column(1, 4), column(0, 5))
    if not constrained:
        return Problem(*columns)
    pinned = np.full(count, -1)
    if draw(st.booleans()):
        pinned[0] = 4 * draw(st.integers(0, 1))
    return Problem(
        *columns,
        alignment=np.array([draw(st.sampled_from([1, 2, 4])) for _ in range(count)]),
        group=np.array([-1, *(draw(st.sampled_from([-1, -1, 3])) for _ in range(count - 1))]),
        pinned=pinned,
        forbidden=(Region(9, 11, 0, 3),) if draw(st.booleans()) else (),
        same_slice_when_touching=draw(st.booleans()),
    )


@settings(max_examples=300, deadline=None)
@given(small_problems(constrained=False), st.integers(0, 3))
def test_finds_the_optimum(problem, seed):
    placement = solve(problem, seconds=2, seed=seed)
    assert placement.height == optimum(problem)
    assert placement.optimal and placement.lower_bound == placement.height


@settings(max_examples=100, deadline=None)
@given(small_problems(constrained=True))
def test_constraints_are_kept_and_the_bound_is_one(problem):
    placement = solve(problem, seconds=0.05)
    verify(problem, placement.offsets, placement.heap, placement.heights)
    least = optimum(problem)
    assert placement.lower_bound <= least <= placement.height
    assert placement.height <= least + 4  # few orders reach every packing; these are tiny


def optimum(problem: Problem) -> int:
    """Every order of the blocks, each as low as it can lie: some order gives a lowest packing."""
    upper = problem.upper + problem.same_slice_when_touching
    members: dict[int, list[int]] = {}
    for row in np.flatnonzero(problem.size > 0).tolist():
        group = int(problem.group[row])
        members.setdefault(group if group >= 0 else -1 - row, []).append(row)
    fixed = [(r.lower, r.upper, r.begin, r.end) for r in problem.forbidden]
    top, free = 0, []
    for rows in members.values():
        pieces = [(int(problem.lower[r]), int(upper[r]), int(problem.size[r])) for r in rows]
        pins = [int(problem.pinned[r]) for r in rows if problem.pinned[r] >= 0]
        if pins:
            fixed += [(a, b, pins[0], pins[0] + s) for a, b, s in pieces]
            top = max(top, *(pins[0] + s for *_, s in pieces))
        else:
            free.append((int(np.lcm.reduce(problem.alignment[rows])), pieces))
    best = 1 << 30
    for order in itertools.permutations(free):
        taken, height = list(fixed), top
        for alignment, pieces in order:
            offset = 0
            while any(
                a < d and c < b and offset < high and low < offset + s
                for a, b, s in pieces
                for c, d, low, high in taken
            ):
                offset += alignment
            taken += [(a, b, offset, offset + s) for a, b, s in pieces]
            height = max(height, *(offset + s for *_, s in pieces))
        best = min(best, height)
    return best


def _shapes() -> types.ModuleType:
    """The generators of the benchmark, which is no package."""
    file = Path(__file__).resolve().parents[2] / "benchmarks" / "packing_shapes.py"
    spec = importlib.util.spec_from_file_location("packing_shapes", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHAPES = _shapes().SHAPES


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [300, 5_000])
def test_never_above_simple_packers(shape, seed, count):
    problem = shape(np.random.default_rng(seed), count)
    placement = solve(problem, seconds=2 if count > 1000 else 0.7, seed=seed)
    assert placement.height <= min(simple_packers(problem).values())


def simple_packers(problem: Problem) -> dict[str, int]:
    alignment = int(problem.alignment.max())
    lives = zip(problem.lower.tolist(), (problem.upper - 1).tolist(), problem.size.tolist(), strict=True)
    items = [HeapItem(size, [(a, b)], number) for number, (a, b, size) in enumerate(lives)]
    heights = {"XLA": best_fit(items, alignment).height}
    sections = Sections(problem.lower, problem.upper, -(-problem.size // alignment) * alignment)
    for rule in (SweepRule.FIRST_FIT, SweepRule.BEST_FIT):
        _, offsets = Sweep(sections, False).place(1 << 62, rule, 0, 60)
        heights[rule.name] = int((offsets + problem.size).max())
    fit = OrderedFit(sections, np.arange(len(items) + 1), np.arange(len(items)), problem.alignment)
    _, offsets = fit.place(np.argsort(-problem.size, kind="stable"), 1 << 62, 60)
    heights["by size"] = int((offsets + problem.size).max())
    return heights


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_symmetric_problems_pack_as_well(shape):
    """Reversed in time, scaled, with rows in another order: as low, or lower by what noise there is in the search."""
    problem = shape(np.random.default_rng(7), 1500)
    base = solve(problem, seconds=1.5)
    rows = np.random.default_rng(1).permutation(len(problem.size))
    columns = (problem.lower, problem.upper, problem.size, problem.alignment)
    lower, upper, size, alignment = columns
    others = (
        (1, Problem(-upper, -lower, size, alignment)),
        (3, Problem(7 * lower + 5, 7 * upper + 5, 3 * size, 3 * alignment)),
        (1, Problem(*(column[rows] for column in columns))),
    )
    for scale, other in others:
        height = solve(other, seconds=1.5).height
        assert abs(height - scale * base.height) <= 0.01 * scale * base.height


def test_problems_that_are_cut_in_time_pack_as_their_parts():
    parts = [SHAPES["random intervals"](np.random.default_rng(seed), 200) for seed in range(3)]
    heights = [solve(part, seconds=1).height for part in parts]
    gap = 10_000
    whole = Problem(
        np.concatenate([part.lower + gap * k for k, part in enumerate(parts)]),
        np.concatenate([part.upper + gap * k for k, part in enumerate(parts)]),
        np.concatenate([part.size for part in parts]),
    )
    assert solve(whole, seconds=3).height <= 1.005 * max(heights)


def test_heaps_of_a_space_fill_one_after_the_other():
    rng = np.random.default_rng(0)
    lower = rng.integers(0, 50, 200)
    space = rng.integers(0, 2, 200)
    heaps = (Heap(0, 3_000), Heap(0, 2_000), Heap(0), Heap(1))
    problem = Problem(lower, lower + rng.integers(1, 20, 200), rng.integers(1, 500, 200), space=space, heaps=heaps)
    placement = solve(problem, seconds=1)
    assert placement.heights[0] <= 3_000 and placement.heights[1] <= 2_000
    assert set(placement.heap[space == 1].tolist()) == {3}
    assert placement.heights[2] > 0 and placement.lower_bound <= placement.height


def test_pins_in_each_others_way_are_named():
    columns = (np.array([0, 1]), np.array([2, 3]), np.array([4, 4]))
    with pytest.raises(ValueError, match="buffer 0 and buffer 1 are pinned to each other's bytes"):
        solve(Problem(*columns, pinned=np.array([0, 2])))
    with pytest.raises(ValueError, match="buffer 1 is pinned to bytes that are forbidden"):
        solve(Problem(*columns, pinned=np.array([-1, 2]), forbidden=(Region(0, 3),)))
    with pytest.raises(ValueError, match=r"group 5 is pinned to the offsets \[0, 8\]"):
        solve(Problem(*columns, group=np.array(5), pinned=np.array([0, 8])))


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        (([0], [1], [-1]), {}, "buffer 0 has a size of -1"),
        (([0, 3], [1, 3], [1, 1]), {}, "buffer 1 dies before it is born, or at once, at 3"),
        (([0], [1], [1.5]), {}, "size has the type float64"),
        (([0], [1, 2], [1]), {}, r"upper has the shape \(2,\)"),
        (([0], [1], [1]), {"alignment": [0]}, "buffer 0 has a alignment of 0"),
        (([0], [1], [1]), {"alignment": [4], "pinned": [2]}, "buffer 0 is not aligned where it is pinned, at 2"),
        (([0], [1], [1]), {"forbidden": (Region(0, 1, heap=4),)}, "forbidden region 0 is on heap 4"),
        (([0, 0, 0], [1, 1, 1], [1 << 61, 1 << 61, 1 << 61]), {}, "bytes together"),
    ],
)
def test_nonsense_is_refused(columns, more, message):
    with pytest.raises(ValueError, match=message):
        Problem(*columns, **more)


def test_ctrl_c_leaves_the_best_so_far():
    problem = SHAPES["random intervals"](np.random.default_rng(3), 20_000)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    placement = solve(problem, seconds=60)
    timer.join()
    assert placement.seconds < 20 and placement.height < 2 * placement.lower_bound


def test_nothing_to_pack():
    placement = solve(Problem([], [], []))
    assert placement.heights == (0,) and placement.optimal and not len(placement.offsets)


@pytest.mark.parametrize("count", [60, 6_000])
def test_same_seed_and_rounds_same_packing(count):
    problem = SHAPES["u-nets"](np.random.default_rng(2), count)
    first, again = (solve(problem, seconds=math.inf, seed=5, rounds=2) for _ in range(2))
    assert first.height == again.height and (first.offsets == again.offsets).all()
    constrained = replace(problem, group=np.where(np.arange(count) % 9, -1, np.arange(count) // 18))
    first, again = (solve(constrained, seconds=math.inf, seed=5, rounds=2) for _ in range(2))
    assert (first.offsets == again.offsets).all()
