"""Blocks and their lives, against XLA's own packing and against a walk over every byte."""

from __future__ import annotations

import random

import pytest
from small_executables import PROGRAMS, serialized

from xla_stalloc.inject.executable import framing, thunks
from xla_stalloc.inject.executable.pack import live_bytes
from xla_stalloc.inject.executable.problem import layout
from xla_stalloc.inject.executable.regions import Regions
from xla_stalloc.packing import HeapItem, verify_placement


@pytest.mark.parametrize("name", PROGRAMS)
def test_xla_itself_never_puts_two_blocks_that_live_at_once_into_the_same_bytes(name):
    executable = framing.read(serialized(name))
    temp = executable.temp()
    blocks = layout(thunks.program(executable.thunks, temp.index)).blocks
    assert blocks
    items = [HeapItem(block.size, block.lives, number) for number, block in enumerate(blocks)]
    verify_placement(items, [block.begin for block in blocks], temp.size, alignment=64)
    assert 0 < live_bytes(blocks) <= temp.size + 64


def test_loop_state_is_one_block_that_lives_through_the_loop():
    executable = framing.read(serialized("loop"))
    program = thunks.program(executable.thunks, executable.temp().index)
    found = layout(program)
    (at,) = [i for i, step in enumerate(program.steps) if step.form is thunks.Form.LOOP]
    before = sum(step.leaves for step in program.steps[:at])
    middle = before + program.steps[at].leaves // 2
    through = [b for b in found.blocks if any(life.first < before and life.last >= middle for life in b.lives)]
    assert any(b.size == 64 * 64 * 4 for b in through)


@pytest.mark.parametrize("seed", range(20))
def test_regions_are_what_a_table_of_bytes_would_be(seed):
    rng = random.Random(seed)
    tables, regions = [[None] * 40, [None] * 40], [Regions(), Regions()]
    for _ in range(30):
        which, begin = rng.randrange(2), rng.randrange(39)
        end, tag = rng.randint(begin + 1, 40), rng.choice("abc")
        if rng.random() < 0.3:
            regions[which].clear(begin, end)
            tables[which][begin:end] = [None] * (end - begin)
        else:
            regions[which].set(begin, end, tag)
            tables[which][begin:end] = [tag] * (end - begin)
        assert spelled(regions[which]) == tables[which]
        within = Regions()
        for piece in regions[which].within(begin, end):
            within.set(*piece)
        assert spelled(within)[begin:end] == tables[which][begin:end]
    merged = regions[0].merged(regions[1], lambda one, other: "".join(sorted(one + other)))
    assert spelled(merged) == [
        one if one == other else "".join(sorted((one or "") + (other or "")))
        for one, other in zip(*tables, strict=True)
    ]


def spelled(regions):
    table = [None] * 40
    for begin, end, tag in regions:
        assert begin < end
        table[begin:end] = [tag] * (end - begin)
    return table
