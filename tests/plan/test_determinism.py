"""The same module gives the same plan: in every process, whatever its hash seed, and on every thread."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import pytest

from xla_stalloc import hlo
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module

PLAN = """
import hashlib, sys
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
planned = plan_module(open(sys.argv[1], "rb").read(), PlanOptions())
print(hashlib.sha256(planned.serialized).hexdigest())
"""


def step(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jax.nn.softmax(h @ w) @ w.T + h
        return jnp.mean(h**2)

    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]


@pytest.fixture(scope="module")
def serialized() -> bytes:
    weights = [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 6
    compiled = jax.jit(step).lower(weights, jax.ShapeDtypeStruct((256, 64), jnp.float32)).compile()
    return hlo.open(compiled).serialized


@pytest.fixture(scope="module")
def digest(serialized) -> str:
    planned = plan_module(serialized, PlanOptions())
    assert planned.serialized is not None and planned.record.saved_bytes > 0
    return hashlib.sha256(planned.serialized).hexdigest()


@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_in_another_process(serialized, digest, seed, tmp_path):
    file = tmp_path / "module"
    file.write_bytes(serialized)
    command = [sys.executable, "-c", PLAN, str(file)]
    done = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True)
    assert done.stdout.strip() == digest, done.stderr


def test_on_many_threads_at_once(serialized, digest):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: plan_module(serialized, PlanOptions()).serialized, range(8)))
    assert {hashlib.sha256(planned or b"").hexdigest() for planned in found} == {digest}
