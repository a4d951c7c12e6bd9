"""Does offloading move the peak? Recompiles a step with residuals or optimizer state in the host's memory.

    python benchmarks/offload.py [--topology v5e:2x2] [--layers 4] [--json]

With libtpu installed (`pip install libtpu`), the TPU compiler says what it comes to, without a TPU. Without it, XLA:CPU
compiles, which leaves everything where it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")

import click
import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from xla_stalloc import hlo
from xla_stalloc.cli import terminal
from xla_stalloc.report.offload import offload
from xla_stalloc.scheduling.cost import CARDS

WIDTH, BATCH = 1024, 16_384


@click.command()
@click.option("--topology", default="v5e:2x2", show_default=True, help="Of TPUs; its first chip is compiled for.")
@click.option("--layers", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per row.")
def main(topology: str, layers: int, as_json: bool) -> None:
    """Compile each variant and show what the compiler says."""
    device, platform = chosen_device(topology)
    policies = jax.checkpoint_policies
    saved = policies.save_only_these_names("activation")
    away = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["activation"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    host = "pinned_host" if platform == "tpu" else "device"  # XLA:CPU takes no state from elsewhere
    variants = {
        "everything on the device": (saved, "device"),
        "residuals offloaded": (away, "device"),
        "optimizer state offloaded": (saved, host),
        "both": (away, host),
    }
    rows = []
    for name, (policy, kind) in variants.items():
        compiled = compile_step(device, layers, policy, kind)
        stats = compiled.memory_analysis()
        rows.append(
            {
                "variant": name,
                "compiled for": platform,
                "arguments": stats.argument_size_in_bytes,
                "temps": stats.temp_size_in_bytes,
                "peak": stats.argument_size_in_bytes
                + stats.output_size_in_bytes
                - stats.alias_size_in_bytes
                + stats.temp_size_in_bytes,
                "host": stats.host_argument_size_in_bytes + stats.host_temp_size_in_bytes,
            }
        )
    on_cpu = hlo.open(compile_step(jax.devices("cpu")[0], layers, saved, "device"))
    estimate = offload(on_cpu, CARDS["a100"], 25e9)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        click.echo(json.dumps({"estimated_peak": estimate.estimated_peak_bytes, "peak": estimate.peak_bytes}))
        return
    table = terminal.table(
        "bytes on the device and on the host", "variant", "compiled for", *(f">{k}" for k in list(rows[0])[2:])
    )
    for row in rows:
        table.add_row(*(terminal.size(value) if isinstance(value, int) else value for value in row.values()))
    terminal.stdout().print(table)
    before, after = map(terminal.size, (estimate.peak_bytes, estimate.estimated_peak_bytes))
    kinds = [candidate.kind for candidate in estimate.chosen]
    click.echo(
        f"estimated from XLA:CPU's schedule, an A100's times and 25 GB/s to the host: {before} to {after} with "
        f"{kinds.count('residual')} residuals and {kinds.count('state')} arrays of state away"
    )


def chosen_device(topology: str) -> tuple[Any, str]:
    """A device to compile for, and its platform."""
    try:
        return topologies.get_topology_desc(topology, platform="tpu").devices[0], "tpu"
    except Exception as error:  # whatever the plugin raises where it is missing or refuses
        click.echo(f"no TPU compiler ({str(error).splitlines()[0]}); XLA:CPU instead", err=True)
        return jax.devices("cpu")[0], "cpu"


def compile_step(device: Any, layers: int, policy: Callable[..., Any], state_kind: str) -> Any:
    """A step of Adam on a residual network, state in the given kind of memory."""
    optimizer = optax.adam(1e-3)
    here = SingleDeviceSharding(device)
    there = here.with_memory_kind(state_kind) if state_kind != "device" else here

    def network(weights: Any, x: jax.Array) -> jax.Array:
        for weight in weights:
            x = x + checkpoint_name(jnp.tanh(x @ weight), "activation")
        return x

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        return jnp.mean(jax.checkpoint(network, policy=policy)(weights, x) ** 2)

    def step(weights: Any, moments: Any, x: jax.Array) -> Any:
        gradients = jax.grad(loss)(weights, x)
        if there is not here:
            moments = jax.tree.map(lambda m: jax.device_put(m, here), moments)
        updates, moments = optimizer.update(gradients, moments, weights)
        if there is not here:
            moments = jax.tree.map(lambda m: jax.device_put(m, there), moments)
        return optax.apply_updates(weights, updates), moments

    def placed(tree: Any, sharding: Any) -> Any:
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding), tree)

    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)] * layers
    moments = jax.eval_shape(optimizer.init, weights)
    arguments = (
        placed(weights, here),
        placed(moments, there),
        placed(jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32), here),
    )
    shardings = jax.tree.map(lambda _: here, weights), jax.tree.map(lambda _: there, moments)
    return jax.jit(step, donate_argnums=(0, 1), out_shardings=shardings).lower(*arguments).compile()


if __name__ == "__main__":
    main()
