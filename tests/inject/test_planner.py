"""The whole way with the planner of the project, nothing replaced."""

from __future__ import annotations

import jax
import pytest
from small_programs import arguments, assert_same_bits, branches, chain, stock_temp_bytes

import xla_stalloc as stalloc


@pytest.mark.parametrize("fun", [branches, chain])
def test_a_program_needs_no_more_and_says_the_same(fun):
    stock = stock_temp_bytes(fun, *arguments())
    planned = stalloc.jit(fun, mode="schedule").lower(*arguments()).compile()
    record = planned.stalloc
    assert "failed" not in record.reason
    assert planned.memory_analysis().temp_size_in_bytes == record.temp_bytes <= stock
    assert 0 < record.lower_bound_bytes <= record.temp_bytes
    assert_same_bits(planned(*arguments()), jax.jit(fun)(*arguments()))


def test_independent_branches_run_one_at_a_time():
    record = stalloc.jit(branches).lower(*arguments()).compile().stalloc
    assert record.levers == ("temporal",) and record.compiles == 1
    assert record.temp_bytes < stock_temp_bytes(branches, *arguments()) / 2


def test_files_are_named_by_the_program(tmp_path):
    before = len(stalloc.records())
    for _ in range(2):
        stalloc.enable(mode="schedule", plan_dir=tmp_path)
        jax.jit(branches)(*arguments())
        jax.jit(branches)(arguments()[0][:128], arguments()[1])
        stalloc.disable()
    names = {path.name for path in tmp_path.glob("jit_branches-*.json")}
    records = [r for r in stalloc.records()[before:] if r.module == "jit_branches"]
    assert len(records) == 4 and len(names) == 2
    assert names == {f"jit_branches-{record.fingerprint}.json" for record in records}


def test_report_tells_what_could_be_reached():
    reported = stalloc.jit(branches, mode="report").lower(*arguments()).compile().stalloc
    planned = stalloc.jit(branches, mode="schedule").lower(*arguments()).compile().stalloc
    assert reported.temp_bytes == planned.temp_bytes
    assert reported.levers == ()
