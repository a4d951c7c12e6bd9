"""The fingerprint changes with the program and with nothing else."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from xla_stalloc import hlo
from xla_stalloc.hlo.schema import hlo_pb2

BASE = """HloModule m
double { x = f32[4]{0} parameter(0)  ROOT sum = f32[4]{0} add(x, x) }
ENTRY main {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  m = f32[4]{0} multiply(a, b)
  d = f32[4]{0} call(m), to_apply=double
  c = f32[4]{0} constant({1, 2, 3, 4})
  s = f32[4]{0} subtract(d, c)
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(s, m)
}"""


def of(text: str) -> str:
    return hlo.open(text).fingerprint()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("multiply(a, b)", "multiply(b, a)"),
        ("multiply(a, b)", "multiply(a, a)"),
        ("multiply(", "add("),
        ("add(x, x)", "multiply(x, x)"),
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}"),
        ("subtract(d, c)", "subtract(d, c), control-predecessors={b}"),
        ("HloModule m", "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }"),
        ("f32[4]{0}", "f32[4]{0:S(1)}"),
    ],
)
def test_changes_with_the_program(old: str, new: str) -> None:
    assert old in BASE
    assert of(BASE.replace(old, new)) != of(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("multiply(a, b)", 'multiply(a, b), metadata={op_name="jit(f)/mul" source_file="f.py" source_line=3}'),
        ("multiply(a, b)", 'multiply(a, b), frontend_attributes={who="me"}'),
        ("double", "twice"),
        ("HloModule m", "HloModule another"),
    ],
)
def test_does_not_change_with_names_and_origins(old: str, new: str) -> None:
    assert old in BASE
    assert of(BASE.replace(old, new)) == of(BASE)


def test_tells_a_shared_value_from_one_computed_twice() -> None:
    text = """HloModule m
ENTRY main {{
  a = f32[4]{{0}} parameter(0)
  n = f32[4]{{0}} negate(a)
  o = f32[4]{{0}} negate(a)
  x = f32[4]{{0}} add(n, {0})
  y = f32[4]{{0}} multiply(o, {1})
  ROOT r = (f32[4]{{0}}, f32[4]{{0}}) tuple(x, y)
}}"""
    assert of(text.format("n", "o")) != of(text.format("o", "n"))


def test_renumbered_ids(serialized: bytes) -> None:
    module = hlo.Module.from_bytes(serialized, "step")
    proto = hlo_pb2.HloModuleProto.FromString(serialized)
    proto.ClearField("schedule")
    for computation in proto.computations:
        computation.root_id += 10**12
        for instruction in computation.instructions:
            instruction.id += 10**12
            instruction.name = f"instruction.{instruction.id}"
            instruction.operand_ids[:] = [id + 10**12 for id in instruction.operand_ids]
            instruction.control_predecessor_ids[:] = [id + 10**12 for id in instruction.control_predecessor_ids]
    assert hlo.Module(proto, "renumbered").fingerprint() == module.fingerprint()


def test_another_process_and_another_function_name(compiled: jax.stages.Compiled) -> None:
    def some_name(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ x).sum()

    ours = hlo.open(jax.jit(some_name).lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile())
    script = """
import jax, jax.numpy as jnp
from xla_stalloc import hlo
def another_name(value):
    activation = jnp.tanh(value @ value)
    return activation.sum()
print(hlo.open(jax.jit(another_name).lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile()).fingerprint())
"""
    environment = {
        "JAX_PLATFORMS": "cpu",
        "PYTHONHASHSEED": "1",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    theirs = subprocess.run(
        [sys.executable, "-c", script], check=True, env=environment, timeout=120, capture_output=True, text=True
    )
    assert ours.fingerprint() == theirs.stdout.strip().splitlines()[-1]
    assert ours.fingerprint() != hlo.open(compiled).fingerprint()
