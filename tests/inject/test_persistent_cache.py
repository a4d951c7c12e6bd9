"""The persistent compilation cache: planned and stock programs never share an entry, and decisions come back."""

from __future__ import annotations

import json

import pytest

PROGRAM = """
import hashlib, json, sys
from functools import partial
import jax
import planner_doubles as doubles
import xla_stalloc as stalloc
from small_programs import arguments, branches, chain
from xla_stalloc.inject import hook

jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
fun, planner, kind = {"branches": branches, "chain": chain}[sys.argv[2]], sys.argv[3], sys.argv[4]
counting = doubles.Counting(
    {
        "good": doubles.reordering(doubles.latest_first, 1_000_000),
        "worse": doubles.reordering(doubles.largest_first, 1_000_000),
        "content": doubles.content,
        "backwards": doubles.backwards,
    }[planner]
)
args = arguments()
hits.clear()
with hook.using(counting):
    compiled = {"stock": jax.jit, "planned": partial(stalloc.jit, mode="schedule")}[kind](fun).lower(*args).compile()
    compiles_hit = len(hits)
    out = jax.tree.leaves(compiled(*args))
print(
    json.dumps(
        {
            "hits": compiles_hit,
            "planned": len(counting.asked),
            "temp": compiled.memory_analysis().temp_size_in_bytes,
            "bits": hashlib.sha256(b"".join(jax.device_get(x).tobytes() for x in out)).hexdigest(),
            "record": json.loads(compiled.stalloc.to_json()) if kind == "planned" else None,
        }
    )
)
"""


@pytest.fixture
def compile_in_new_process(python, tmp_path):
    def compile_(fun, planner, kind, cache="cache"):
        printed = python(PROGRAM, str(tmp_path / cache), fun, planner, kind)
        return json.loads(next(line for line in printed.splitlines() if line.startswith("{")))

    return compile_


def test_planned_then_stock_then_planned_again(compile_in_new_process):
    planned = compile_in_new_process("branches", "good", "planned")
    stock = compile_in_new_process("branches", "good", "stock")
    assert (planned["hits"], stock["hits"]) == (0, 0)
    assert planned["temp"] < stock["temp"] / 2 and planned["bits"] == stock["bits"]

    again = compile_in_new_process("branches", "good", "planned")
    assert (again["hits"], again["planned"]) == (1, 0)
    assert (again["temp"], again["bits"]) == (planned["temp"], planned["bits"])
    timed = {"plan_seconds", "compile_seconds"}
    assert {k: v for k, v in again["record"].items() if k not in timed} == {
        k: v for k, v in planned["record"].items() if k not in timed
    }
    assert again["record"]["levers"] == ["temporal"] and again["record"]["plan_seconds"] == 0


def test_stock_then_planned_then_stock_again(compile_in_new_process):
    stock = compile_in_new_process("branches", "good", "stock")
    planned = compile_in_new_process("branches", "good", "planned")
    again = compile_in_new_process("branches", "good", "stock")
    assert (stock["hits"], planned["hits"], again["hits"]) == (0, 0, 1)
    assert planned["temp"] < stock["temp"] / 2
    assert again["temp"] == stock["temp"] and again["bits"] == stock["bits"]


def test_a_bad_plan_in_the_cache_gives_way_to_stock_again(compile_in_new_process):
    first = compile_in_new_process("chain", "worse", "planned")
    again = compile_in_new_process("chain", "worse", "planned")
    assert (first["hits"], again["hits"], again["planned"]) == (0, 2, 0)
    for run in (first, again):
        assert run["temp"] == run["record"]["stock_temp_bytes"]
        assert run["record"]["levers"] == [] and run["record"]["stock_exact"] and run["record"]["compiles"] == 2
        assert "planned order ended at" in run["record"]["reason"]
    assert first["bits"] == again["bits"]


def test_a_refused_plan_is_refused_again(compile_in_new_process):
    for _ in range(2):
        run = compile_in_new_process("branches", "backwards", "planned")
        assert "XLA refused" in run["record"]["reason"] and run["record"]["levers"] == []


def test_no_plan_from_the_cache_is_still_a_record(compile_in_new_process):
    first = compile_in_new_process("branches", "content", "planned")
    again = compile_in_new_process("branches", "content", "planned")
    assert (first["hits"], again["hits"]) == (0, 1)
    # The hook did not run, so the record is made from the executable's own module.
    for run in (first, again):
        assert run["planned"] == 1
        assert run["record"]["reason"] == "stock is best" and run["record"]["levers"] == []
        assert run["record"]["temp_bytes"] == run["record"]["stock_temp_bytes"] == run["temp"]
