"""One process of a job: compiles a program per scenario together with the others, and prints what it ended with.

Usage: agreeing_process.py PORT PROCESSES PROCESS SCENARIO...
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from functools import partial
from unittest import mock

import jax
import numpy as np
import planner_doubles as doubles
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from small_programs import arguments, branches

import xla_stalloc as stalloc
from xla_stalloc.hlo import Module
from xla_stalloc.inject import agreement, hook, limits
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module

PORT, PROCESSES, PROCESS = map(int, sys.argv[1:4])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{PORT}", PROCESSES, PROCESS)


def program(number: int):
    """A program for each number: what was agreed on one says nothing about another."""

    def spread_branches(x, w):
        return branches(x, w) + number

    return spread_branches


planned_jit = partial(stalloc.jit, mode="schedule")


def call(function, *, jit=planned_jit, run=True):
    """Compiles a function for all processes, and runs it; its record, size, order's digest, and the result's bits."""
    mesh = Mesh(np.array(jax.devices()), "data")
    x, w = arguments()
    x = jax.make_array_from_callback(x.shape, NamedSharding(mesh, PartitionSpec("data")), lambda i: x[i])
    w = jax.make_array_from_callback(w.shape, NamedSharding(mesh, PartitionSpec()), lambda i: w[i])
    started = time.monotonic()
    compiled = jit(function).lower(x, w).compile()
    seconds = time.monotonic() - started
    record = getattr(compiled, "stalloc", None)
    return {
        "levers": list(record.levers) if record else [],
        "reason": record.reason if record else "",
        "temp": compiled.memory_analysis().temp_size_in_bytes,
        "order": agreement.digest_of(hook.hlo_of(compiled.runtime_executable())),
        "seconds": seconds,
        "bits": np.asarray(compiled(x, w).addressable_data(0)).tobytes().hex() if run else "",
    }


def planned(number=0, run=True):
    """The first process plans; in the others the planner is never asked."""
    with hook.using(plan_module if PROCESS == 0 else doubles.raising):
        return call(program(number), run=run)


def again_alone():
    """The last process compiles once more what all had compiled, alone."""
    first = planned(1)
    if PROCESS < PROCESSES - 1:
        return first
    jax.clear_caches()
    return planned(1, run=False)


def each_for_itself():
    """Every process plans its own compile of a program, without talking to the others."""
    stock = call(program(2), jit=jax.jit)
    mesh = Mesh(np.array(jax.devices()), "data")
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments()]
    shapes[0] = shapes[0].update(sharding=NamedSharding(mesh, PartitionSpec("data")))
    shapes[1] = shapes[1].update(sharding=NamedSharding(mesh, PartitionSpec()))
    compiled = jax.jit(program(2)).lower(*shapes).compile()
    found = plan_module(hook.hlo_of(compiled.runtime_executable()), PlanOptions(pin_collectives=False))
    return {**stock, "order": agreement.digest_of(found.serialized)}


def first_fails():
    with hook.using(doubles.raising if PROCESS == 0 else plan_module):
        return call(program(3))


def another_program():
    """The last process has compiled something that is not what the plan is for."""
    with mock.patch.object(Module, "fingerprint", lambda self: "0" * 32) if PROCESS else ExitStack():
        return call(program(4))


def last_cannot():
    """The compiler of the last process cannot take the plan."""
    with mock.patch.object(limits, "lost", lambda serialized: "lost on purpose") if PROCESS else ExitStack():
        return call(program(5))


def silent():
    """The last process does not plan at all; the others are not to wait for ever."""
    with mock.patch.object(agreement, "PATIENCE_SECONDS", 2.0):
        return call(program(6), **({"jit": jax.jit} if PROCESS else {}))


for scenario in sys.argv[4:]:
    print(json.dumps({"scenario": scenario, **globals()[scenario]()}), flush=True)
jax.distributed.shutdown()
