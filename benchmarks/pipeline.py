"""Pods: how long it takes to simulate large pipelines, and to plan one program for 8, 256 and 1024 devices.

    python benchmarks/pipeline.py [--stages 64] [--micro-batches 512] [--devices 8 ...] [--json]

Exit code 1 if a simulation takes longer than `limits.toml` allows, or a plan for many devices is not that for few.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import click

from xla_stalloc.cli import terminal
from xla_stalloc.sharding.pipeline import use
from xla_stalloc.sharding.stage import Device, Link, Pipeline, Program, Stage

# Per device always the same part of the work: 4 devices share each layer, the others share the batch.
PROGRAM = """
import json, sys, time, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from xla_stalloc import hlo
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
count = int(sys.argv[1])
mesh = Mesh(np.array(jax.devices()).reshape(-1, 4), ("d", "m"))
def loss(weights, x):
    for up, down in weights:
        x = x + jax.nn.softmax(x @ up) @ down
    return jnp.mean(x**2)
def spec(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*axes)))
weights = [(spec((256, 256), None, "m"), spec((256, 256), "m", None))] * 12
x = spec((64 * count // 4, 256), "d")
module = hlo.open(jax.jit(jax.grad(loss)).lower(weights, x).compile())
seconds = []
for _ in range(3):
    started = time.perf_counter()
    record = plan_module(module.serialized, PlanOptions()).record
    seconds.append(time.perf_counter() - started)
print(json.dumps({"instructions": len(module.instructions_by_id), "plan_seconds": min(seconds),
    "stock_temp_bytes": record.stock_temp_bytes, "temp_bytes": record.temp_bytes}))
"""


@click.command()
@click.option("--stages", type=click.IntRange(min=1), default=64, show_default=True)
@click.option("--micro-batches", type=click.IntRange(min=1), default=512, show_default=True)
@click.option("--devices", type=click.IntRange(min=4), multiple=True, default=(8, 256, 1024), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per row.")
def main(stages: int, micro_batches: int, devices: tuple[int, ...], as_json: bool) -> None:
    """Simulate, then plan."""
    simulated = [
        simulate(name, stages, chunks, micro_batches)
        for name, chunks in (("gpipe", 1), ("1f1b", 1), ("zero-bubble", 1), ("interleaved", 2))
    ]
    planned = [plan(count) for count in devices]
    if as_json:
        for row in simulated + planned:
            click.echo(json.dumps(row))
    else:
        for title, rows in (("simulated pipelines", simulated), ("one program on many devices", planned)):
            table = terminal.table(title, *(f">{key.replace('_', ' ')}" for key in rows[0]))
            for row in rows:
                table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
            terminal.stdout().print(table)
    limits = tomllib.loads((Path(__file__).parent / "limits.toml").read_text())["pipeline"]
    quick = all(row["simulate_seconds"] < limits["simulate_seconds"] for row in simulated)
    same = len({tuple(row[key] for key in ("instructions", "stock_temp_bytes", "temp_bytes")) for row in planned}) == 1
    sys.exit(0 if quick and same else 1)


def simulate(name: str, devices: int, chunks: int, micro_batches: int) -> dict[str, Any]:
    """Simulates one step of stages that differ a little from each other."""
    figures = [
        Stage(
            name=f"stage {number}",
            forward=Program(0.010 + 0.0001 * (number % 7), 5 * 10**8),
            backward=Program(0.020, 9 * 10**8),
            input_gradient=Program(0.010, 7 * 10**8),
            weight_gradient=Program(0.010, 6 * 10**8),
            optimizer=Program(0.005),
            state_bytes=8 * 10**9 // chunks,
            gradient_bytes=2 * 10**9 // chunks,
            activation_bytes=3 * 10**8 // chunks,
            kept_bytes=10**8 // chunks,
            deferred_bytes=10**8 // chunks,
            output_bytes=3 * 10**7,
        )
        for number in range(devices * chunks)
    ]
    pipeline = Pipeline(figures, [Device(f"device {d}", 80 * 10**9) for d in range(devices)], Link(5e10, 1e-5))
    started = time.perf_counter()
    found = use(pipeline, name, micro_batches)
    return {
        "schedule": name,
        "stages": len(figures),
        "micro_batches": micro_batches,
        "simulate_seconds": time.perf_counter() - started,
        "step_seconds": found.seconds,
        "bubble": found.bubble,
        "highest_peak_bytes": max(device.peak_bytes for device in found.devices),
    }


def plan(count: int) -> dict[str, Any]:
    """Compiles and plans in a process that has so many virtual devices."""
    flags = f"--xla_force_host_platform_device_count={count}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(count)], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"{count} devices: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return {"devices": count, **found}


if __name__ == "__main__":
    main()
