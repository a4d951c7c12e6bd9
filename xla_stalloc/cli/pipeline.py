"""`xla-stalloc pipeline`: which schedule and split of a pipeline fits, and how fast it is."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from xla_stalloc.cli import terminal

if TYPE_CHECKING:
    from xla_stalloc.sharding.choose import Choice


@click.command()
@click.argument("spec")
@click.option("--schedule", "schedules", multiple=True, help="Only this schedule; may be given more than once.")
@click.option(
    "--micro-batches",
    type=click.IntRange(min=1),
    multiple=True,
    help="Micro-batches per step to try; by default those of SPEC, and for layers also half and twice as many.",
)
@click.option(
    "--chunks",
    type=click.IntRange(min=1),
    multiple=True,
    default=(2, 4),
    show_default=True,
    help="Stages per device to try with the interleaved schedule.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, with every device, instead of tables.")
def pipeline(
    spec: str, schedules: tuple[str, ...], micro_batches: tuple[int, ...], chunks: tuple[int, ...], as_json: bool
) -> None:
    """Simulate the pipeline in the file SPEC under each micro-batch schedule.

    SPEC is JSON with devices and their budgets, the link between them, and either stages or layers. Layers are split
    into stages so that the step fits and is fast. docs/pipelines.md shows one.

    Exits with 1 if nothing fits.
    """
    from xla_stalloc.sharding.pipeline_file import load
    from xla_stalloc.sharding.stage import PipelineError

    try:
        with terminal.progress() as bar:
            bar.add_task(f"simulating {spec}", total=None)
            found = load(spec).compare(schedules, micro_batches, chunks)
    except PipelineError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    if as_json:
        choices = [{**choice.use.to_dict(), "bounds": choice.bounds} for choice in found]
        click.echo(json.dumps({"schema": 1, "choices": choices}, separators=(",", ":")))
    else:
        _show(found)
    sys.exit(0 if found[0].use.fits else 1)


def _show(found: list[Choice]) -> None:
    console = terminal.stdout()
    columns = (">micro-batches", ">stages", ">step", ">bubble", ">balance", ">highest peak", "fits")
    table = terminal.table("schedules, the best first", "schedule", *columns)
    for choice in found:
        use = choice.use
        table.add_row(
            use.schedule,
            str(use.micro_batches),
            str(len(choice.bounds) - 1),
            terminal.duration(use.seconds),
            f"{100 * use.bubble:.1f} %",
            f"{100 * use.balance:.1f} %",
            terminal.size(max(device.peak_bytes for device in use.devices)),
            "yes" if use.fits else f"{terminal.size(use.missing_bytes)} missing",
        )
    console.print(table)
    best = found[0].use
    table = terminal.table(f"devices under {best.schedule}", "device", "stages", ">state", ">peak", ">budget", ">spare")
    for device in best.devices:
        budget, spare = device.memory_bytes, device.spare_bytes
        table.add_row(
            device.name,
            ", ".join(device.stages),
            terminal.size(device.state_bytes),
            terminal.size(device.peak_bytes),
            "" if budget is None else terminal.size(budget),
            "" if spare is None else f"{'-' if spare < 0 else ''}{terminal.size(abs(spare))}",
        )
    console.print(table)
