"""Compiling in another process, for CPU devices: results, the cache, errors, and no process that stays behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from xla_stalloc.sharding import worker
from xla_stalloc.sharding.deviceless import Cancellation, compile_step
from xla_stalloc.sharding.errors import FitError
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

SCRIPT = """
import time, jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

print("libraries and scripts print what they like")

def make_step(mesh, *, batch=64):
    w = jax.ShapeDtypeStruct((256, 256), "float32", sharding=NamedSharding(mesh, P(None, "x")))
    return lambda w, x: jnp.tanh(x @ w).sum(), (w, jax.ShapeDtypeStruct((batch, 256), "float32"))

def wrong(mesh):
    return 3

def fails(mesh):
    raise KeyError("no such layer")

def hangs(mesh):
    open(__file__ + ".hangs", "w").close()
    time.sleep(600)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XLA_STALLOC_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def _request(script: Path, function: str = "make_step", **arguments: int) -> Request:
    return Request(function=f"{script}:{function}", topology="cpu:4", mesh="x=4", arguments=arguments)


def test_a_users_step_is_compiled_once(script: Path) -> None:
    progress: list[str] = []
    estimates: list[Fit] = []
    first = compile_step(_request(script), progress.append, estimates.append)
    again = compile_step(_request(script))
    assert first.argument_bytes == 256 * 64 * 4 + 64 * 256 * 4
    assert first.peak_bytes is not None and first.temp_bytes is not None and first.output_bytes is not None
    assert first.peak_bytes == first.argument_bytes + first.output_bytes + first.temp_bytes
    assert first.fits is None and first.limit_bytes is None and first.reason == ""
    assert (first.cached, again.cached) == (False, True)
    assert again.to_dict() == first.to_dict() | {"cached": True, "estimate_seconds": again.estimate_seconds}
    assert [found.estimate_bytes for found in estimates] == [first.estimate_bytes]
    assert any("compiling for cpu:4" in what for what in progress)
    entries = list((script.parent / "cache").iterdir())
    assert [path.suffix for path in entries] == [".json"]
    entries[0].write_text("{")  # damaged: compiled again
    assert not compile_step(_request(script)).cached


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("wrong", r"returned int; it has to return \(step, arguments\)"),
        ("fails", "making the step failed: KeyError: 'no such layer'"),
        ("make_stp", "has no function 'make_stp'; it has make_step, wrong, fails, hangs"),
    ],
)
def test_what_is_wrong_with_a_users_function_is_told(script: Path, function: str, message: str) -> None:
    with pytest.raises(FitError, match=message):
        compile_step(_request(script, function))


def test_arguments_that_the_function_does_not_take(script: Path) -> None:
    with pytest.raises(FitError, match="besides the mesh it takes batch"):
        compile_step(_request(script, bach=3))


def test_a_cancelled_worker_is_dead(script: Path) -> None:
    cancellation = Cancellation()
    started = time.monotonic()

    def cancel() -> None:
        _wait(Path(f"{script}.hangs"))
        cancellation.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(FitError, match="ended with -9"):
        compile_step(_request(script, "hangs"), cancellation=cancellation)
    thread.join()
    assert time.monotonic() - started < 60
    with pytest.raises(FitError, match="cancelled"):
        compile_step(_request(script), cancellation=cancellation)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_command(script: Path, by: signal.Signals) -> None:
    command = "from xla_stalloc.cli.main import main; main()"
    arguments = ["fit", f"{script}:hangs", "--topology", "cpu:4", "--mesh", "x=4"]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait(Path(f"{script}.hangs"))
    (worker,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(by)
    _, said = process.communicate(timeout=30)
    if by is signal.SIGINT:
        assert process.returncode == 130
        assert said.splitlines()[-1] == "Stopped; the compilers have ended."
    for _ in range(300):
        if not _alive(int(worker)):
            return
        time.sleep(0.1)
    raise AssertionError(f"the worker {worker} still runs")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not appear; {os.listdir(path.parent)}")


def test_without_an_estimate_the_compiler_still_tells(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("an unknown operation")

    monkeypatch.setattr(worker, "estimate", broken)
    request = Request(function=f"{script}:make_step", topology="cpu:8", mesh="x=8", arguments={})
    *_, last = worker._serve(request)
    found = Fit.from_dict(last["fit"])
    assert found.peak_bytes and found.estimate_bytes is None and found.estimate_error is None
    with pytest.raises(FitError, match="no estimate for this step: an unknown operation"):
        list(worker._serve(dataclasses.replace(request, compile=False)))


def test_planned_it_needs_less_and_is_another_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_STALLOC_CACHE", str(tmp_path / "cache"))
    request = Request(
        function="xla_stalloc.models.steps:make_step",
        topology="cpu:8",
        mesh="data=4,model=2",
        arguments={"model": "gpt", "layers": 2},
    )
    stock = compile_step(request)
    planned = compile_step(dataclasses.replace(request, mode="schedule"))
    assert stock.stock_temp_bytes is None and not planned.cached
    assert planned.stock_temp_bytes == stock.temp_bytes
    if planned.reason:  # the oldest jaxlib would lose the donation of arguments
        assert planned.temp_bytes is not None and stock.temp_bytes is not None
        assert "donation" in planned.reason and planned.temp_bytes <= stock.temp_bytes
    else:
        assert planned.temp_bytes is not None and stock.temp_bytes is not None
        assert planned.temp_bytes < stock.temp_bytes
    assert compile_step(dataclasses.replace(request, mode="schedule")).cached
