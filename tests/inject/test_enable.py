"""`enable` and `disable`: every program of the process."""

from __future__ import annotations

import inspect
import json
import warnings

import jax
import jax.numpy as jnp
import planner_doubles as doubles
import pytest
from small_programs import arguments, assert_same_bits, branches, stock_temp_bytes

import xla_stalloc as stalloc
from xla_stalloc.inject import hook, interception, ledger, switch


@pytest.fixture(autouse=True)
def planner():
    counting = doubles.Counting(doubles.reordering())
    with hook.using(counting):
        yield counting


def recorded_since(count):
    return [r for r in stalloc.records()[count:] if r.module == "jit_branches"]


def test_calls_and_lowered_programs_are_planned():
    stock = stock_temp_bytes(branches, *arguments())
    before = len(stalloc.records())
    stalloc.enable(mode="schedule")
    jitted = jax.jit(branches)
    result = jitted(*arguments())
    compiled = jax.jit(lambda x, w: branches(x, w) * 2).lower(*arguments()).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < stock / 2
    (record,) = recorded_since(before)
    assert (record.levers, record.mode) == (("temporal",), "schedule")
    stalloc.disable()
    assert_same_bits(result, jax.jit(branches)(*arguments()))
    assert stock_temp_bytes(branches, *arguments()) == stock


def test_functions_compiled_before_are_planned_after(planner):
    jitted = jax.jit(branches)
    jitted(*arguments())
    stalloc.enable()
    jitted(*arguments())
    jitted(*arguments())
    assert len(planner.asked) == 1
    stalloc.disable()
    jitted(*arguments())
    assert len(planner.asked) == 1
    assert jitted.lower(*arguments()).compile().memory_analysis().temp_size_in_bytes == stock_temp_bytes(
        branches, *arguments()
    )


def test_enabling_twice_changes_nothing(planner):
    jitted = jax.jit(branches)
    stalloc.enable()
    jitted(*arguments())
    stalloc.enable()
    jitted(*arguments())
    assert len(planner.asked) == 1
    stalloc.enable(mode="report")
    jitted(*arguments())
    assert [o.mode for o in planner.asked] == ["full", "report"]
    stalloc.disable()
    stalloc.disable()


def test_one_function_can_differ_from_the_process(planner):
    stalloc.enable(mode="schedule", budget_seconds=0.25)
    stalloc.jit(branches, mode="off")(*arguments())
    assert planner.asked == []
    stalloc.jit(branches)(*arguments())
    stalloc.jit(branches, budget_seconds=1)(*arguments())
    assert [(o.mode, o.budget_seconds) for o in planner.asked] == [("schedule", 0.25), ("schedule", 1.0)]
    stalloc.enable(mode="off")
    stalloc.jit(branches)(*arguments())
    assert len(planner.asked) == 2
    stalloc.disable()
    stalloc.jit(branches)(*arguments())
    assert planner.asked[2].mode == "full"


def test_eager_operations_cost_no_planning(planner):
    stalloc.enable()
    before = len(stalloc.records())
    (jnp.arange(5.0) + 1).sum().block_until_ready()
    tiny = stalloc.records()[before:]
    assert planner.asked == []
    assert tiny and all("nothing to reorder" in r.reason for r in tiny)


def test_records_are_in_order_and_are_copies():
    before = len(stalloc.records())
    for size in (16, 32):
        stalloc.jit(lambda x, w: branches(x, w) + 1).lower(arguments()[0][:size], arguments()[1]).compile()
    records = stalloc.records()
    assert len(records) == before + 2
    records.clear()
    assert len(stalloc.records()) == before + 2


def test_records_are_written_to_the_plan_folder(tmp_path):
    folder = tmp_path / "a" / "plans"
    stalloc.enable(mode="schedule", plan_dir=folder)
    jax.jit(branches)(*arguments())
    (path,) = folder.glob("jit_branches-*.json")
    assert path.name == "jit_branches-0123abcd.json"
    record = stalloc.PlanRecord.from_json(path.read_text())
    assert record in stalloc.records()
    assert json.loads(path.read_text())["schema"] == 1
    assert not [p for p in folder.iterdir() if p.suffix != ".json"]


def test_a_plan_folder_that_cannot_be_written_fails_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    stalloc.enable(plan_dir=tmp_path / "file")
    with pytest.warns(UserWarning, match="cannot write the record"):
        jax.jit(branches)(*arguments())


@pytest.mark.parametrize("change", ["signature", "missing"])
def test_a_jax_with_another_compile_step_stays_stock_and_says_so(monkeypatch, change, planner):
    from jax._src import compiler

    step = inspect.unwrap(compiler.compile_or_get_cached)
    if change == "signature":
        # What a later JAX may do: one parameter more. JAX's own caller does not know it, so it has a default.
        def other(backend, computation, devices, options, callbacks, executable_devices, pgle=None, more=None):
            return step(backend, computation, devices, options, callbacks, executable_devices, pgle)

        monkeypatch.setattr(compiler, "compile_or_get_cached", other)
    else:
        monkeypatch.delattr(compiler, "compile_or_get_cached")
    monkeypatch.setattr(interception, "_state", None)
    monkeypatch.setattr(ledger, "_by_executable", {})  # nothing passes by it now
    with pytest.warns(RuntimeWarning, match="plans nothing: this version of JAX"):
        stalloc.enable()
    if change == "signature":
        with pytest.warns(RuntimeWarning, match="plans nothing"):
            planned = stalloc.jit(branches)
        compiled = planned.lower(*arguments()).compile()
        assert planner.asked == []
        assert "another compile step" in compiled.stalloc.reason
        assert compiled.stalloc.temp_bytes == compiled.memory_analysis().temp_size_in_bytes > 0


def test_no_hook_for_a_platform_is_a_reason(monkeypatch):
    monkeypatch.setattr(hook, "_registered", {"cpu": "no planning on platform 'cpu': on purpose"})
    compiled = stalloc.jit(branches, mode="schedule").lower(*arguments()).compile()
    assert compiled.stalloc.reason == "no planning on platform 'cpu': on purpose"
    assert compiled.stalloc.temp_bytes == stock_temp_bytes(branches, *arguments())


def test_enabling_warns_of_nothing_here():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        switch.warn_if_unavailable()
        stalloc.enable()
