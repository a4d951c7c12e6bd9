"""The real TPU and CUDA compilers on a tiny step; skipped where they are not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from xla_stalloc.sharding.deviceless import compile_step
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

SIZES = {"model": "llama_tiny"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_STALLOC_CACHE", str(tmp_path))


def _compile(package: str, topology: str, mesh: str, **sizes: int) -> Fit:
    pytest.importorskip(package, reason=f"{package} is not installed")
    function = "xla_stalloc.models.steps:make_step"
    return compile_step(Request(function=function, topology=topology, mesh=mesh, arguments=SIZES | sizes))


def _check(found: Fit) -> None:
    assert found.fits is True and found.reason == ""
    assert found.spare_bytes is not None and found.spare_bytes > 0
    assert found.temp_bytes and found.argument_bytes and found.compile_seconds


@pytest.mark.tpu
@pytest.mark.parametrize("topology", ["v5e:2x2", "v5p:2x2x1"])
def test_tpu(topology: str) -> None:
    _check(_compile("libtpu", topology, "fsdp=2,tp=2"))


@pytest.mark.tpu
def test_a_step_that_does_not_fit_a_tpu() -> None:
    found = _compile("libtpu", "v5e:2x2", "fsdp=2,tp=2", batch=2**16, seq=2**11)
    assert found.fits is False
    assert found.temp_bytes is not None and found.temp_bytes > 15 * 2**30
    assert found.limit_bytes is not None and 15 * 2**30 < found.limit_bytes < 16 * 2**30
    assert "RESOURCE_EXHAUSTED" in found.reason


@pytest.mark.cuda
@pytest.mark.parametrize("card", ["v100", "a100", "h200", "gb200"])
def test_cuda(card: str) -> None:
    _check(_compile("jax_plugins.xla_cuda12", f"{card}:2x2", "fsdp=2,tp=2"))
