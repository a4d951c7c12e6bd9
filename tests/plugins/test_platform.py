"""JAX on the platform ``stalloc``: the same results as on the plugin that is wrapped, and what was counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TRAIN = """
import json, jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((jax.device_count(),), ("data",))
rows = NamedSharding(mesh, PartitionSpec("data"))
batch = jax.device_put(jnp.arange(64 * 32, dtype="float32").reshape(64, 32) / 2048, rows)
weights = jax.device_put(jnp.linspace(-1, 1, 32 * 32).reshape(32, 32), NamedSharding(mesh, PartitionSpec()))

def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w) @ w - x) ** 2)

@jax.jit
def step(w, x):
    value, gradient = jax.value_and_grad(loss)(w, x)
    return w - 0.1 * gradient, value

losses = []
for _ in range(10):
    weights, value = step(weights, batch)
    losses.append(value)
print(json.dumps({"losses": [float(v).hex() for v in losses], "devices": jax.device_count()}))
"""


@pytest.mark.parametrize("devices", [1, 4])
def test_training_gives_what_the_vendor_gives(
    devices: int, run: Callable[..., Any], stalloc: Callable[..., Any], cpu_vendor: Path
) -> None:
    program = f"import jax; jax.config.update('jax_num_cpu_devices', {devices})\n{TRAIN}"
    wrapped = stalloc(program)
    if devices == 4:  # what the plugin has by itself
        plain = run(program, JAX_PLATFORMS="vendor", PJRT_NAMES_AND_LIBRARY_PATHS=f"vendor:{cpu_vendor}")
        assert wrapped == plain
    assert wrapped["devices"] == devices
    assert len(set(wrapped["losses"])) == 10


def test_calls_are_counted(stalloc: Callable[..., Any]) -> None:
    counted = stalloc(f"""{TRAIN}
from xla_stalloc.inject import native
before = native.figures()
for _ in range(7):
    weights, value = step(weights, batch)
value.block_until_ready()
after = native.figures()
print(json.dumps([before, after]))
""")
    before, after = counted
    assert before["clients"] == 1
    assert before["compiles"] >= 1
    assert after["executions"] - before["executions"] == 7
    assert after["compiles"] == before["compiles"]
    assert after["buffers_destroyed"] > before["buffers_destroyed"]


def test_memory_stats_are_true(stalloc: Callable[..., Any]) -> None:
    stats = stalloc("""
import json, jax, numpy as np
device, = jax.devices()
seen = [device.memory_stats()]
array = jax.device_put(np.ones((1024, 1024), np.float32) * 2, device, may_alias=False).block_until_ready()
seen.append(device.memory_stats())
array.delete()
seen.append(device.memory_stats())
print(json.dumps(seen))
""")
    empty, one, deleted = stats
    assert empty["bytes_in_use"] == 0
    assert one["bytes_in_use"] == 4 << 20
    assert one["largest_alloc_size"] == 4 << 20
    assert one["num_allocs"] == empty["num_allocs"] + 1
    assert deleted["bytes_in_use"] == 0
    assert deleted["peak_bytes_in_use"] >= 4 << 20
    assert one["bytes_limit"] > 1 << 28


def test_the_vendor_says_nothing_about_memory(run: Callable[..., Any], cpu_vendor: Path) -> None:
    program = "import jax, json; print(json.dumps(jax.devices()[0].memory_stats()))"
    assert run(program, JAX_PLATFORMS="vendor", PJRT_NAMES_AND_LIBRARY_PATHS=f"vendor:{cpu_vendor}") is None


def test_without_a_vendor_the_user_is_told_what_to_do(run: Callable[..., Any], wrapper: Path) -> None:
    program = "import jax, json\ntry: jax.devices()\nexcept RuntimeError as e: print(json.dumps(str(e)))"
    said = run(program, JAX_PLATFORMS="stalloc", XLA_STALLOC_WRAPS="/nowhere/plugin.so")
    assert "XLA_STALLOC_WRAPS=/nowhere/plugin.so: neither one of cpu, cuda, tpu, nor a file" in said


def test_nobody_who_did_not_ask_gets_the_platform(run: Callable[..., Any]) -> None:
    program = "import jax.extend, json; print(json.dumps(sorted(jax.extend.backend.backends())))"
    assert run(program, JAX_PLATFORMS="cpu") == ["cpu"]


def test_conformance_is_that_of_the_vendor(
    cpu_vendor: Path, wrapper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypjrt", reason="brings the checker")
    monkeypatch.setenv("XLA_STALLOC_WRAPS", str(cpu_vendor))
    reports = []
    for plugin in (cpu_vendor, wrapper):
        out = tmp_path / f"{plugin.stem}.json"
        done = subprocess.run(
            [sys.executable, "-m", "pypjrt.conform", str(plugin), "--json", str(out)], capture_output=True, text=True
        )
        assert out.exists(), done.stderr
        report = json.loads(out.read_text())
        reports.append({check["id"]: check["result"] for check in report["checks"]})
    plain, wrapped = reports
    assert len(plain) > 30
    # Nothing is lost, and what the vendor cannot say about memory is known here.
    assert {k: (plain[k], wrapped[k]) for k in plain if plain[k] != wrapped[k]} == {
        "device.memory_stats": ("unsupported", "pass"),
        "device.clear_memory_stats": ("unsupported", "pass"),
    }
