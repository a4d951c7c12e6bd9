"""Random programs, compiled by stock JAX and planned: equal bits, never more memory, and every figure as XLA says.

A long search: XLA_STALLOC_RANDOM_PROGRAMS=3000 pytest tests/end_to_end/test_random_programs.py
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import xla_stalloc as stalloc
from xla_stalloc.hlo import Module
from xla_stalloc.inject import hook, limits
from xla_stalloc.plan.planner import plan_module

sys.path.insert(0, str(Path(__file__).parent))
from random_programs import Program, arguments, programs

_LONG = int(os.environ.get("XLA_STALLOC_RANDOM_PROGRAMS", 0))
BUDGET_SECONDS = 0.02  # seconds of planning; what is found in them is checked as well as what is found in more


def check(program: Program) -> set[str]:
    """Compiles and runs a program both ways; returns what the plan did."""
    state, batch = arguments(program)
    planner_records = []
    did = set()

    def planner(serialized, options):
        planned = plan_module(serialized, options)
        planner_records.append(planned.record)
        if planned.serialized is not None and _instructions(planned.serialized) < _instructions(serialized):
            did.add("without copies")
        return planned

    stock = jax.jit(program.__call__, donate_argnums=0).lower(state, batch).compile()
    with hook.using(planner):
        fun = stalloc.jit(program.__call__, donate_argnums=0, mode="schedule", budget_seconds=BUDGET_SECONDS)
        planned = fun.lower(state, batch).compile()
    record = planned.stalloc
    note(record.to_json())

    stock_bytes = stock.memory_analysis().temp_size_in_bytes
    assert "failed" not in record.reason and "refused" not in record.reason
    assert record.temp_bytes == planned.memory_analysis().temp_size_in_bytes <= stock_bytes
    assert planned.memory_analysis().alias_size_in_bytes == stock.memory_analysis().alias_size_in_bytes
    if planner_records and not limits.RESETS_ENTRY:
        (emulated,) = planner_records
        assert emulated.stock_temp_bytes == stock_bytes
        assert emulated.lower_bound_bytes <= emulated.temp_bytes == record.temp_bytes

    outputs = []
    for compiled in (stock, planned):
        shardings, _ = compiled.input_shardings[0]
        state_now, seen = state, []
        for _ in range(2):
            state_now = jax.device_put(state_now, shardings)
            state_now, results = compiled(state_now, batch)
            seen += [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((state_now, results))]
        outputs.append(seen)
    assert outputs[0] == outputs[1]
    return did | {"planned" if record.levers == ("temporal",) else record.reason}


def _instructions(serialized: bytes) -> int:
    return len(Module.from_bytes(serialized, "test").instructions_by_id)


@pytest.mark.parametrize(("on_mesh", "examples"), [(False, 30), (True, 8)], ids=["one_device", "eight_devices"])
def test_planned_equals_stock(on_mesh, examples):
    ends = Counter()

    @settings(
        max_examples=_LONG or examples,
        derandomize=not _LONG,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(on_mesh))
    def run(program):
        ends.update({"all", *check(program)})

    run()
    # Otherwise the equality above would say little.
    if not limits.RESETS_ENTRY:
        assert ends["planned"] >= 0.6 * ends["all"] and ends["without copies"] >= 0.2 * ends["all"], ends
