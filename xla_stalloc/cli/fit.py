"""`xla-stalloc fit`: does a training step fit devices that are not here?"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xla_stalloc.cli import terminal
from xla_stalloc.plan.options import MODES

if TYPE_CHECKING:
    from xla_stalloc.sharding.fit import Fit
    from xla_stalloc.sharding.request import Request

_BAR = 20
_ZOO = "xla_stalloc.models.steps:make_step"


@click.command()
@click.argument("model")
@click.option("--topology", required=True, help="Devices: v5p:4x4x4, v5e:16x16*2 (slices), h100:8x8, cpu:8.")
@click.option(
    "--mesh", required=True, help="Axes with sizes: fsdp=16,tp=4; one may be * for all devices that are left."
)
@click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="An argument of the step: batch, seq, remat..."
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="NAME=A,B,...",
    help="Try several values of an argument, of topology, or of mesh (these with ; between them).",
)
@click.option("--xla-option", "options", multiple=True, metavar="NAME=VALUE", help="A compiler option of XLA's.")
@click.option(
    "--mode", type=click.Choice(MODES[:1] + MODES[2:]), default="off", show_default=True, help="Of planning the memory."
)
@click.option("--estimate", "only_estimate", is_flag=True, help="From shardings alone, in seconds; compile nothing.")
@click.option(
    "--workers", type=click.IntRange(min=1), default=max(1, (os.cpu_count() or 1) // 2), help="Compilers at a time."
)
@click.option(
    "--results", type=click.Path(dir_okay=False, path_type=Path), help="File that a stopped sweep goes on from."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of tables.")
def fit(
    model: str,
    topology: str,
    mesh: str,
    sets: tuple[str, ...],
    sweeps: tuple[str, ...],
    options: tuple[str, ...],
    mode: str,
    only_estimate: bool,
    workers: int,
    results: Path | None,
    as_json: bool,
) -> None:
    """Compile MODEL's training step for devices that are not here, and say whether it fits.

    Exit code 1 means that nothing fits. The real compilers do the work: install xla_stalloc[tpu] or xla_stalloc[cuda].

    MODEL is train.py:make_step or package.module:make_step, a function that takes a mesh and returns (step, abstract
    arguments with shardings), or one of the project's models: llama_1b, llama_8b, gpt-scan-remat, ...
    """
    from xla_stalloc.sharding import sweep
    from xla_stalloc.sharding.errors import FitError
    from xla_stalloc.sharding.request import Request

    arguments = {name: _value(text) for name, text in map(_assignment, sets)}
    if ":" not in model:
        arguments["model"] = _known(model)
    base = Request(
        function=model if ":" in model else _ZOO,
        topology=topology,
        mesh=mesh,
        arguments=arguments,
        compiler_options={name: _value(text) for name, text in map(_assignment, options)},
        compile=not only_estimate,
        mode=mode,
    )
    axes = dict(_axis(*_assignment(text)) for text in sweeps)
    try:
        fits = _sweep(sweep.grid(base, axes), workers, results) if axes or results else [_one(base)]
    except FitError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        click.echo("Stopped; the compilers have ended.", err=True)
        sys.exit(130)
    answers = {
        "smallest_topology": sweep.smallest_topology(fits),
        "largest_batch": sweep.largest_batch(fits),
        "pareto": sweep.pareto(fits),
    }
    if as_json:
        click.echo(json.dumps(_document(fits, answers)))
    else:
        show(fits, answers if axes else {})
    sys.exit(0 if any(found.fits is not False and found.argument_bytes is not None for found in fits) else 1)


def _one(request: Request) -> Fit:
    from xla_stalloc.sharding.deviceless import compile_step

    with terminal.progress() as bar:
        task = bar.add_task("starting", total=None)

        def estimated(fit: Fit) -> None:
            if fit.estimate_bytes is not None and bar.console.is_terminal:
                bar.console.print(f"from shardings alone: peak {terminal.size(fit.estimate_bytes)} per device")

        return compile_step(request, lambda what: bar.update(task, description=what), estimated)


def _sweep(requests: list[Request], workers: int, results: Path | None) -> list[Fit]:
    from xla_stalloc.sharding import sweep

    with terminal.progress() as bar:
        task = bar.add_task(f"compiling {len(requests)} variants", total=len(requests))
        return sweep.run(requests, workers, results, on_done=lambda _: bar.advance(task))


def _known(model: str) -> str:
    from xla_stalloc.models.steps import step_names

    if model not in step_names():
        raise click.UsageError(f"no model '{model}'; give train.py:make_step, or one of {', '.join(step_names())}")
    return model


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise click.UsageError(f"'{text}' sets nothing; write NAME=VALUE")
    return name, value


def _axis(name: str, text: str) -> tuple[str, list[Any]]:
    if name in ("topology", "mesh"):
        return name, text.split(";")
    return name, [_value(part) for part in text.split(",")]


def _value(text: str) -> Any:
    """A number, true or false where it looks like one, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _document(fits: list[Fit], answers: dict[str, Any]) -> dict[str, Any]:
    numbers = {id(found): number for number, found in enumerate(fits)}

    def place(answer: Any) -> Any:
        if isinstance(answer, list):
            return [numbers[id(found)] for found in answer]
        return None if answer is None else numbers[id(answer)]

    return {
        "schema": 1,
        "fits": [found.to_dict() for found in fits],
        "answers": {name: place(answer) for name, answer in answers.items()},
    }


def show(fits: list[Fit], answers: dict[str, Any]) -> None:
    """Prints results as a table, and what a sweep was made for."""
    from rich.text import Text

    console = terminal.stdout()
    planned = any(found.stock_temp_bytes is not None for found in fits)
    columns = (
        ">arguments",
        ">outputs",
        ">temps",
        *([">stock temps"] if planned else []),
        ">peak",
        ">limit",
        ">spare",
        ">largest block",
        ">estimate",
        ">compile",
    )
    table = terminal.table("per device", "step", "fits", *columns)
    for found in fits:
        table.add_row(*map(Text, _row(found, planned)))
    console.print(table)
    for found in fits:
        if found.reason:
            console.print(Text(f"{_name(found)}: {found.reason}"), soft_wrap=True)
    for title, answer in (
        ("smallest topology that fits", answers.get("smallest_topology")),
        ("largest batch that fits", answers.get("largest_batch")),
    ):
        if answer is not None:
            console.print(Text(f"{title}: {_name(answer)}"), soft_wrap=True)
    if front := answers.get("pareto"):
        title = "memory against arithmetic and communication: nothing is better in all three"
        table = terminal.table(title, "step", ">peak", "", ">TFLOP", ">GB sent")
        most = max(map(_memory, front))
        for found in sorted(front, key=_memory):
            bar = "█" * round(_BAR * _memory(found) / most)
            sent = f"{found.collective_bytes / 1e9:.2f}"
            table.add_row(Text(_name(found)), _size(_memory(found)), bar, f"{found.flops / 1e12:.1f}", sent)
        console.print(table)


def _row(found: Fit, planned: bool) -> tuple[str, ...]:
    fits = {True: "yes", False: "NO", None: "-"}[found.fits]
    error = "" if found.estimate_error is None else f" ({100 * found.estimate_error:+.0f} %)"
    seconds = "-" if found.compile_seconds is None else terminal.duration(found.compile_seconds)
    return (
        _name(found),
        fits,
        _size(found.argument_bytes),
        _size(found.output_bytes),
        _size(found.temp_bytes),
        *([_size(found.stock_temp_bytes)] if planned else []),
        _size(found.peak_bytes),
        _size(found.limit_bytes),
        _size(found.spare_bytes),
        _size(found.largest_block_bytes),
        _size(found.estimate_bytes) + error,
        seconds + (" (cached)" if found.cached else ""),
    )


def _memory(found: Fit) -> int:
    return found.peak_bytes or found.estimate_bytes or 0


def _name(found: Fit) -> str:
    arguments = (f"{name}={value}" for name, value in found.arguments.items() if name != "model")
    return " ".join((found.topology, found.mesh, *arguments))


def _size(count: int | None) -> str:
    if count is None:
        return "-"
    return f"-{terminal.size(-count)}" if count < 0 else terminal.size(count)
