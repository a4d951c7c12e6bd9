"""`xla-stalloc offload`: what of a compiled program may wait in the host's memory."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from xla_stalloc.cli import terminal


@click.command()
@click.argument("source")
@click.option("--module", "name", help="The module; by default the one with the most instructions.")
@click.option("--card", default="h100", show_default=True, help="The GPU whose times count: h100, b200, a100...")
@click.option(
    "--host-gigabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=50.0,
    show_default=True,
    help="GB per second between a device and its host, each way.",
)
@click.option("--smallest-megabytes", type=click.FloatRange(min=0), default=1.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of a table and code.")
def offload(
    source: str, name: str | None, card: str, host_gigabytes: float, smallest_megabytes: float, as_json: bool
) -> None:
    """Find residuals and state of the program in SOURCE that may wait in the host's memory.

    SOURCE is what `analyze` takes. Times are a model's and the peak is an estimate; recompile with the code that this
    prints to see what comes of it.
    """
    from xla_stalloc import hlo
    from xla_stalloc.report import offload as offloading
    from xla_stalloc.report.analyze import open_modules
    from xla_stalloc.report.offload_code import code
    from xla_stalloc.scheduling.cost import CARDS

    if card not in CARDS:
        raise click.BadParameter(f"{card!r} is none of {', '.join(CARDS)}", param_hint="--card")
    try:
        open_modules(source, name)
        module = hlo.open(source, name=name)
        found = offloading.offload(module, CARDS[card], 1e9 * host_gigabytes, int(1e6 * smallest_megabytes))
    except ValueError as error:  # no compiled program, or one that is not modelled
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    if as_json:
        content = {"schema": 1, "module": module.name, **dataclasses.asdict(found), "code": code(found)}
        click.echo(json.dumps(content, separators=(",", ":")))
        return
    console = terminal.stdout()
    before, after = terminal.size(found.peak_bytes), terminal.size(found.estimated_peak_bytes)
    title = f"{module.name}: peak {before}, estimated {after} with these away"
    table = terminal.table(title, "name", "kind", "source", ">size", ">idle", ">transfer", ">slack")
    for candidate in found.chosen:
        table.add_row(
            candidate.name,
            candidate.kind,
            candidate.source,
            terminal.size(candidate.bytes),
            *(
                f"{1e3 * seconds:.2f} ms"
                for seconds in (candidate.idle_seconds, candidate.transfer_seconds, candidate.slack_seconds)
            ),
        )
    console.print(table)
    click.echo(code(found), nl=False)
