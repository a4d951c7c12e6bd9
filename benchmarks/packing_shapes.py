"""Packing problems of shapes that no public trace here has; each takes a random generator and a number of buffers."""

from __future__ import annotations

import numpy as np

from xla_stalloc.packing import Problem


def random_intervals(rng: np.random.Generator, count: int) -> Problem:
    """Uniform births, durations and sizes."""
    lower = rng.integers(0, 4 * count, count)
    return Problem(lower, lower + rng.integers(1, 300, count), rng.integers(1, 4096, count))


def growing_caches(rng: np.random.Generator, count: int) -> Problem:
    """Requests come and go; each has a cache that is copied into a larger one now and then, and scratch in between."""
    rows, clock = [], 0
    while len(rows) < count:
        born, size = clock, int(rng.integers(1, 9)) * 512
        for _ in range(int(rng.integers(1, 8))):
            length = int(rng.integers(4, 60))
            rows.append((born, born + length + 1, size))
            rows += [(born + k, born + k + 2, int(rng.integers(1, 64)) * 64) for k in range(0, length, 7)]
            born, size = born + length, size * 2
        clock += int(rng.integers(1, 20))
    return Problem(*np.array(rows[:count]).T)


def u_nets(rng: np.random.Generator, count: int) -> Problem:
    """Skip connections: born on the way down, used on the way up, halved at each level; several passes."""
    rows, clock = [], 0
    while len(rows) < count:
        depth = int(rng.integers(3, 9))
        for level in range(depth):
            size = max(int(rng.integers(900, 1100)) * 64 >> level, 1)
            rows.append((clock + 3 * level, clock + 6 * depth - 3 * level, size))
            rows += [(clock + 3 * level + k, clock + 3 * level + k + 2, size // 2 + 1) for k in range(2)]
            up = clock + 6 * depth - 3 * level - 3
            rows += [(up + k, up + k + 2, size // 2 + 3) for k in range(2)]
        clock += 5 * depth
    return Problem(*np.array(rows[:count]).T)


def tilings(rng: np.random.Generator, count: int) -> Problem:
    """On-chip double buffering: tiles of few sizes, each alive for two or three of the steps of a pipeline."""
    lower = np.sort(rng.integers(0, count // 4, count))
    return Problem(lower, lower + rng.integers(2, 5, count), rng.choice([128, 256, 384, 1024], count), np.array(128))


SHAPES = {
    "random intervals": random_intervals,
    "growing caches": growing_caches,
    "u-nets": u_nets,
    "tilings": tilings,
}
