"""The real TPU and CUDA compilers on a tiny step; skipped where they are not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from xla_stalloc.sharding.deviceless import compile_step
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

# In float32, which every card has.
SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def make_step(mesh, *, batch=64):
    def step(w, x):
        return w - jax.grad(lambda w: (jnp.tanh(jnp.tanh(x @ w) @ w.T) ** 2).sum())(w)

    w, x = (NamedSharding(mesh, P(*axes)) for axes in (("fsdp", "tp"), ("fsdp",)))
    arguments = (jax.ShapeDtypeStruct((2048, 2048), "float32", sharding=w),
                 jax.ShapeDtypeStruct((batch, 2048), "float32", sharding=x))
    return jax.jit(step, donate_argnums=0, out_shardings=w), arguments
"""


@pytest.fixture(autouse=True)
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XLA_STALLOC_CACHE", str(tmp_path))
    (tmp_path / "train.py").write_text(SCRIPT)
    return f"{tmp_path}/train.py:make_step"


def _compile(package: str, script: str, topology: str, **arguments: int) -> Fit:
    if importlib.util.find_spec(package.partition(".")[0]) is None or importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return compile_step(Request(function=script, topology=topology, mesh="fsdp=2,tp=2", arguments=arguments))


def _check(found: Fit) -> None:
    assert found.fits is True and found.reason == ""
    assert found.spare_bytes is not None and found.spare_bytes > 0
    assert found.argument_bytes == 2048 * 2048 + 64 // 2 * 2048 * 4
    assert found.temp_bytes is not None and found.compile_seconds


@pytest.mark.tpu
@pytest.mark.parametrize("topology", ["v5e:2x2", "v5p:2x2x1"])
def test_tpu(script: str, topology: str) -> None:
    _check(_compile("libtpu", script, topology))


@pytest.mark.tpu
def test_a_step_that_does_not_fit_a_tpu(script: str) -> None:
    found = _compile("libtpu", script, "v5e:2x2", batch=2**22)
    assert found.fits is False
    assert found.temp_bytes is not None and found.temp_bytes > 15 * 2**30
    assert found.limit_bytes is not None and 15 * 2**30 < found.limit_bytes < 16 * 2**30
    assert "RESOURCE_EXHAUSTED" in found.reason


@pytest.mark.cuda
@pytest.mark.parametrize("card", ["v100", "a100", "h200", "gb200"])
def test_cuda(script: str, card: str) -> None:
    _check(_compile("jax_plugins.xla_cuda12", script, f"{card}:2x2"))
