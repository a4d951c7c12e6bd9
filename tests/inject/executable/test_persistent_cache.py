"""The persistent compilation cache holds what XLA made; offsets are put in after each load."""

from __future__ import annotations

import json
from pathlib import Path

PROGRAM = """
import hashlib, json, math, sys
sys.path.insert(0, sys.argv[3])
import jax
import planner_doubles as doubles
import xla_stalloc as stalloc
from small_executables import PROGRAMS, argument, disjoint
from xla_stalloc.inject import hook
from xla_stalloc.inject.executable import lever
from xla_stalloc.inject.executable.repack import repack

jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
lever.repack = lambda data: repack(data, disjoint, at_most=math.inf)
found = []
for name in ("gather", "loop"):
    x = argument()
    lowered = {"stock": jax.jit, "planned": stalloc.jit}[sys.argv[2]](PROGRAMS[name]).lower(x)
    hits.clear()
    with hook.using(doubles.content):
        compiled = lowered.compile()
    found.append(
        {
            "hits": len(hits),
            "temp": compiled.memory_analysis().temp_size_in_bytes,
            "bits": hashlib.sha256(jax.device_get(compiled(x)).tobytes()).hexdigest(),
            "levers": list(compiled.stalloc.levers) if sys.argv[2] == "planned" else [],
        }
    )
print(json.dumps(found))
"""


def test_stock_and_planned_stay_apart_and_offsets_are_found_again(python, tmp_path):
    def compile_in_new_process(kind):
        printed = python(PROGRAM, str(tmp_path / "cache"), kind, str(Path(__file__).parent))
        return json.loads(next(line for line in printed.splitlines() if line.startswith("[")))

    runs = {}
    for kind in ("planned", "stock"):
        runs[kind] = first, again = compile_in_new_process(kind), compile_in_new_process(kind)
        assert [program["hits"] for program in first] == [0, 0]
        assert [program["hits"] for program in again] == [1, 1]
        for one, other in zip(first, again, strict=True):
            assert {**one, "hits": 1} == other
    for planned, stock in zip(runs["planned"][0], runs["stock"][0], strict=True):
        assert planned["levers"] == ["spatial"]
        assert planned["temp"] != stock["temp"] and planned["bits"] == stock["bits"]
