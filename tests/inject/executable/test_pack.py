"""Offsets for blocks: right, never above XLA's best fit, at the bound where that leaves holes that can be closed."""

from __future__ import annotations

import random

import pytest
from small_executables import PROGRAMS, serialized

from xla_stalloc.inject.executable import framing, thunks
from xla_stalloc.inject.executable.liveness import Life
from xla_stalloc.inject.executable.pack import live_bytes, pack
from xla_stalloc.inject.executable.problem import ALIGNMENT, Block, layout
from xla_stalloc.packing import HeapItem, best_fit, verify_placement


def checked(blocks):
    """Height of our packing and of XLA's."""
    items = [HeapItem(block.size, block.lives, number) for number, block in enumerate(blocks)]
    offsets = pack(blocks)
    height = max(offset + block.size for offset, block in zip(offsets, blocks, strict=True))
    verify_placement(items, offsets, height, ALIGNMENT)
    return height, best_fit(items, ALIGNMENT).height


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_of_programs(name):
    executable = framing.read(serialized(name))
    blocks = layout(thunks.program(executable.thunks, executable.temp().index)).blocks
    ours, theirs = checked(blocks)
    assert ours <= theirs
    assert ours > live_bytes(blocks) - ALIGNMENT


def test_random_blocks_with_holes_in_their_lives():
    better = 0
    for seed in range(60):
        rng = random.Random(seed)
        blocks = []
        for _ in range(25):
            times = sorted(rng.sample(range(60), 2 * rng.choice((1, 1, 2))))
            lives = [Life(a, b) for a, b in zip(times[::2], times[1::2], strict=True)]
            blocks.append(Block(0, rng.randint(1, 5000), lives))
        ours, theirs = checked(blocks)
        assert live_bytes(blocks) - ALIGNMENT < ours <= theirs
        better += ours < theirs
    assert better > 20


def test_live_bytes_count_the_padding():
    blocks = [Block(0, 1, [Life(0, 2)]), Block(0, 65, [Life(2, 3)]), Block(0, 64, [Life(3, 3), Life(5, 9)])]
    assert live_bytes(blocks) == 192
    assert live_bytes([]) == 0
