"""`xla-stalloc export`: the memory of a compiled program in the formats of other tools."""

from __future__ import annotations

import json
import sys

import click

from xla_stalloc.cli import output, terminal

_FORMATS = ("memory_viz", "perfetto", "csv", "pprof")  # those of report.exports, which is not imported for --help


@click.command()
@click.argument("source")
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="Whose reader it is for.")
@click.option("-o", "--output", "path", type=click.Path(dir_okay=False), required=True, help="File to write.")
@click.option("--module", "name", help="The module; by default the one with the most instructions.")
@click.option("--plan", is_flag=True, help="What planning makes of it, in place of stock.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text.")
def export(source: str, form: str, path: str, name: str | None, plan: bool, as_json: bool) -> None:
    """Write the memory of the compiled program in SOURCE for another tool.

    \b
    memory_viz  a snapshot for PyTorch's memory viewer, https://pytorch.org/memory_viz
    perfetto    a trace of buffers and live bytes, https://ui.perfetto.dev
    csv         the packing problem of the temp allocation, which `pack` reads
    pprof       what is live at the peak by call stack, for `go tool pprof`

    SOURCE is what `analyze` takes.
    """
    from xla_stalloc import hlo
    from xla_stalloc.plan.planner import without_garbage_collection
    from xla_stalloc.report.exports import export as written_for
    from xla_stalloc.report.map.boxes import memory_map
    from xla_stalloc.report.map.planned import planned_map

    try:
        with terminal.progress() as bar, without_garbage_collection():
            bar.add_task(f"reading {source}", total=None)
            module = hlo.open(source, name=name)
            drawn = planned_map(module) if plan else memory_map(module)
            data = written_for(drawn, form)
    except ValueError as error:  # no compiled program, or one that is not modelled or cannot be planned
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    output.write(path, data)
    if as_json:
        content = {
            "schema": 1,
            "module": module.name,
            "title": drawn.title,
            "format": form,
            "output": path,
            "bytes": len(data),
            "buffers": len(drawn.values),
        }
        click.echo(json.dumps(content, separators=(",", ":")))
    else:
        click.echo(f"{module.name}, {drawn.title}: {len(drawn.values):,} buffers for {form} written to {path}")
