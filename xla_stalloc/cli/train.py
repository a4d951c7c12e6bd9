"""`xla-stalloc train`: a real training step, stock against planned."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from xla_stalloc.cli import backend, terminal
from xla_stalloc.cli.options import MeshShape, MeshType
from xla_stalloc.cli.versions import versions
from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS, MODES

_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("model")
@click.option("--mesh", type=MeshType(), default="1x1", show_default=True, help="Devices, data by model.")
@click.option("--steps", type=_COUNT, default=20, show_default=True, help="Training steps to run and compare.")
@click.option("--mode", type=click.Choice(MODES), default="full", show_default=True, help="What planning may do.")
@click.option(
    "--budget-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_BUDGET_SECONDS,
    show_default=True,
    help="Planning time per program.",
)
@click.option("--layers", type=_COUNT, help="Layers; for resnet, blocks per stage.")
@click.option("--width", type=_COUNT, help="Size of a token's vector; for resnet, channels of the first stage.")
@click.option("--heads", type=_COUNT, help="Attention heads.")
@click.option("--batch", type=_COUNT, help="Examples per step, over all devices.")
@click.option("--seq", type=_COUNT, help="Tokens per sequence.")
@click.option("--vocab", type=_COUNT, help="Tokens in the vocabulary.")
@click.option("--image", type=_COUNT, help="Pixels along a side of an image.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of a table.")
def train(
    model: str,
    mesh: MeshShape,
    steps: int,
    mode: str,
    budget_seconds: float,
    as_json: bool,
    **sizes: int | None,
) -> None:
    """Train MODEL twice, with XLA's own plan and with ours, and compare.

    Both start from the same state and see the same data. The check fails (exit code 1) if a loss or a bit of the state
    differs after any step, or if the planned step needs more memory than the stock one.

    MODEL is gpt, optionally with -nnx, -scan and -remat in this order (gpt-scan-remat), or resnet.
    """
    backend.prepare(mesh.data * mesh.model)
    from xla_stalloc.models import ModelError

    try:
        result = run(model, mesh, steps, mode, budget_seconds, sizes)
    except ModelError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(result))
    else:
        show(result)
    sys.exit(0 if passed(result) else 1)


def run(
    model: str, mesh_shape: MeshShape, steps: int, mode: str, budget_seconds: float, sizes: dict[str, int | None]
) -> dict[str, Any]:
    """Does the work of `train` and returns what it prints as JSON.

    Raises:
        ModelError: no such model, or sizes or a mesh that do not fit it.
    """
    import jax

    import xla_stalloc as stalloc
    from xla_stalloc import models
    from xla_stalloc.cli.comparison import compare, compile_timed

    spec = models.get(model, **sizes)
    spec.check_mesh(mesh_shape._asdict())
    mesh = models.make_mesh(*mesh_shape)
    arguments = spec.arguments(mesh)
    with terminal.progress() as bar:
        task = bar.add_task("compiling with stock XLA", total=steps + 2)
        stock, stock_compile_seconds = compile_timed(spec.jit(mesh).lower(*arguments))
        bar.update(task, advance=1, description="planning and compiling")
        planned_step = spec.jit(mesh, stalloc.jit, mode=mode, budget_seconds=budget_seconds)
        planned, compile_seconds = compile_timed(planned_step.lower(*arguments))
        bar.update(task, advance=1, description="training, stock and planned in turns")
        batches = (jax.device_put(spec.batch(i), spec.batch_shardings(mesh)) for i in range(steps))
        compared = compare(stock, planned, spec.start(mesh), batches, after_step=lambda: bar.advance(task))
    record = planned.stalloc
    return {
        "schema": 1,
        "model": spec.name,
        "mesh": str(mesh_shape),
        "steps": steps,
        "sizes": dict(spec.sizes),
        "mode": mode,
        "budget_seconds": budget_seconds,
        "losses": compared.losses,
        "bit_identical": compared.bit_identical,
        "stock_temp_bytes": stock.memory_analysis().temp_size_in_bytes,
        "temp_bytes": planned.memory_analysis().temp_size_in_bytes,
        "peak_live_bytes": record.peak_live_bytes,
        "lower_bound_bytes": record.lower_bound_bytes,
        "levers": list(record.levers),
        "reason": record.reason,
        "step_seconds": compared.step_seconds,
        "stock_step_seconds": compared.stock_step_seconds,
        "step_ratio": compared.step_ratio,
        "plan_seconds": record.plan_seconds,
        "compile_seconds": compile_seconds,
        "stock_compile_seconds": stock_compile_seconds,
        "versions": versions(),
    }


def passed(result: dict[str, Any]) -> bool:
    """Whether a result of `run` is right and no worse than stock."""
    return bool(result["bit_identical"] and result["temp_bytes"] <= result["stock_temp_bytes"])


def show(result: dict[str, Any]) -> None:
    """Prints a result of `run` as a table."""
    stock, planned = result["stock_temp_bytes"], result["temp_bytes"]
    saved = 100 * (stock - planned) / stock if stock else 0.0
    bound = terminal.size(result["lower_bound_bytes"]) if result["lower_bound_bytes"] else "unknown"
    losses = result["losses"]
    identical = "the same, bit for bit" if result["bit_identical"] else "[bold red]DIFFERENT[/]"

    title = f"{result['model']} on a {result['mesh']} mesh, {result['steps']} steps"
    table = terminal.table(title, "", ">stock", ">planned", "")
    table.add_row(
        "temp per device", terminal.size(stock), terminal.size(planned), f"saved {saved:.1f} %; bound {bound}"
    )
    table.add_row(
        "step",
        terminal.duration(result["stock_step_seconds"]),
        terminal.duration(result["step_seconds"]),
        f"ratio {result['step_ratio']:.2f}",
    )
    table.add_row(
        "compile",
        terminal.duration(result["stock_compile_seconds"]),
        terminal.duration(result["compile_seconds"]),
        f"planning {terminal.duration(result['plan_seconds'])}",
    )
    console = terminal.stdout()
    console.print(table)
    console.print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}; losses and states {identical}")
    console.print(f"levers applied: {', '.join(result['levers']) or 'none'}")
    if result["reason"]:
        console.print(f"reason: {result['reason']}", markup=False)
