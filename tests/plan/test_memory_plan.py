"""Plans travel through files and come out the same; they apply to their own program and to nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xla_stalloc as stalloc
from xla_stalloc import hlo
from xla_stalloc.plan.verify import PlanError

SQUARE = jax.ShapeDtypeStruct((128, 128), "float32")


def reductions(state: Any, x: Any) -> Any:
    """Breadth first, all products are live at once; and the donated state is read before it is overwritten."""
    read = state[0, 0]
    rows = jnp.stack([jnp.sort((x + i) @ x, axis=0)[0] for i in range(8)])
    return state.at[0, 0].add(1), rows * read


@pytest.fixture(scope="module")
def compiled() -> Any:
    return jax.jit(reductions, donate_argnums=0).lower(SQUARE, SQUARE).compile()


@pytest.fixture(scope="module")
def plan(compiled: Any) -> stalloc.MemoryPlan:
    return stalloc.plan(compiled)


def test_the_figures_hold_for_the_module_that_it_makes(compiled: Any, plan: stalloc.MemoryPlan) -> None:
    record = plan.record
    assert record.stock_temp_bytes == compiled.memory_analysis().temp_size_in_bytes
    assert record.temp_bytes < record.stock_temp_bytes
    assert record.fingerprint == plan.fingerprint == hlo.open(compiled).fingerprint()
    assert [copy.name.startswith("copy") for copy in plan.removed_copies] == [True]
    (planned,) = stalloc.analyze(plan.apply(hlo.open(compiled))).modules
    assert planned.temp_bytes == record.temp_bytes


def test_saved_and_loaded_it_does_the_same(compiled: Any, plan: stalloc.MemoryPlan, tmp_path: Path) -> None:
    path = tmp_path / "step.plan"
    plan.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["step.plan"]
    loaded = stalloc.MemoryPlan.load(path)
    assert loaded == plan
    module = hlo.open(compiled)
    assert loaded.apply(module) == plan.apply(module)


def test_it_applies_to_another_compile_of_the_program(plan: stalloc.MemoryPlan) -> None:
    jax.clear_caches()
    again = hlo.open(jax.jit(reductions, donate_argnums=0).lower(SQUARE, SQUARE).compile())
    (planned,) = stalloc.analyze(plan.apply(again)).modules
    assert planned.temp_bytes == plan.record.temp_bytes


def renumbered(module: hlo.Module) -> hlo.Module:
    """The same module with other instruction ids."""
    proto = type(module.proto).FromString(module.proto.SerializeToString())
    for computation in proto.computations:
        computation.root_id += 7
        for instruction in computation.instructions:
            instruction.id += 7
            instruction.operand_ids[:] = [id + 7 for id in instruction.operand_ids]
            instruction.control_predecessor_ids[:] = [id + 7 for id in instruction.control_predecessor_ids]
    for sequence in proto.schedule.sequences.values():
        sequence.instruction_ids[:] = [id + 7 for id in sequence.instruction_ids]
    return hlo.open(proto.SerializeToString())


def test_ids_may_differ_if_names_do_not(compiled: Any, plan: stalloc.MemoryPlan) -> None:
    other = renumbered(hlo.open(compiled))
    assert other.instructions_by_id.keys() != hlo.open(compiled).instructions_by_id.keys()
    (planned,) = stalloc.analyze(plan.apply(other)).modules
    assert planned.temp_bytes == plan.record.temp_bytes


def test_other_names_are_refused(compiled: Any, plan: stalloc.MemoryPlan) -> None:
    proto = renumbered(hlo.open(compiled)).proto
    for computation in proto.computations:
        for instruction in computation.instructions:
            instruction.name += ".other"
    with pytest.raises(PlanError, match=r"is missing.*plan it anew"):
        plan.apply(hlo.open(proto.SerializeToString()))


def test_another_program_is_refused(plan: stalloc.MemoryPlan) -> None:
    other = hlo.open(jax.jit(lambda x: x + 1).lower(SQUARE).compile())
    with pytest.raises(PlanError, match=r"'jit__lambda' has fingerprint .* plan of 'jit_reductions'.*plan this"):
        plan.apply(other)


def test_a_tampered_order_is_refused(compiled: Any, plan: stalloc.MemoryPlan, tmp_path: Path) -> None:
    path = tmp_path / "step.plan"
    plan.save(path)
    raw = json.loads(path.read_text())
    raw["orders"][0]["instructions"].reverse()
    path.write_text(json.dumps(raw))
    with pytest.raises(PlanError, match="does not fit module 'jit_reductions'"):
        stalloc.MemoryPlan.load(path).apply(hlo.open(compiled))
    raw["orders"][0]["instructions"].pop()
    path.write_text(json.dumps(raw))
    with pytest.raises(PlanError, match="each of its instructions exactly once"):
        stalloc.MemoryPlan.load(path).apply(hlo.open(compiled))


def test_nothing_found_leaves_the_module_alone() -> None:
    module = hlo.open(jax.jit(lambda x: x + 1).lower(SQUARE).compile())
    plan = stalloc.plan(module.proto.SerializeToString())
    assert plan.orders == plan.removed_copies == ()
    assert plan.apply(module) == module.proto.SerializeToString(deterministic=True)
    assert "no order of these instructions needs less" in plan.explain()


def test_explain_says_what_changes(plan: stalloc.MemoryPlan) -> None:
    text = plan.explain()
    assert plan.fingerprint in text
    assert f"copies of donated arguments left out: {plan.removed_copies[0].name}" in text
    assert f"ordered anew: {plan.orders[0].computation.name}, {len(plan.orders[0].instructions)} instructions" in text


def test_a_lowered_program_is_told_to_compile() -> None:
    with pytest.raises(hlo.HloError, match=r"no schedule yet.*[Cc]ompile it first"):
        stalloc.plan(jax.jit(lambda x: x + 1).lower(SQUARE))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file"),
        ("", "expected a plan"),
        ("[1]", "it holds a list"),
        ('{"schema": 99}', "its schema is 99"),
        ('{"schema": 1, "options": {}}', "'module' is missing"),
        ('{"schema": 1, "options": {"speed": 1}}', "speed"),
        ('{"schema": 1, "options": {}, "module": "m", "fingerprint": "f", "record": {}}', "'module' is missing"),
    ],
)
def test_a_bad_file_is_named_with_what_was_expected(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "bad.plan"
    if content is not None:
        path.write_text(content)
    with pytest.raises(PlanError, match=problem) as raised:
        stalloc.MemoryPlan.load(path)
    assert str(raised.value).startswith(str(path))
