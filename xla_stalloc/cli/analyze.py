"""`xla-stalloc analyze`: where the memory of a compiled program goes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from xla_stalloc.cli import terminal

if TYPE_CHECKING:
    from xla_stalloc.report.model import MemoryReport


@click.command()
@click.argument("source")
@click.option("--module", "name", help="Only the module of this name, e.g. jit_step.")
@click.option("--plan/--no-plan", default=True, show_default=True, help="Also plan, and show what that brings.")
@click.option(
    "--top", type=click.IntRange(min=0), default=20, show_default=True, help="Buffers to list at the peak, by size."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, with all buffers, instead of tables.")
def analyze(source: str, name: str | None, plan: bool, top: int, as_json: bool) -> None:
    """Report the memory of the compiled programs in SOURCE.

    Arguments, outputs, aliases, temps, the peak, what is live there by size and source line, what planning would bring,
    and what the program itself could do.

    SOURCE is a folder written with XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_proto", or a file: HLO as protobuf
    (.pb, also compressed), HLO text, or a serialized executable.
    """
    from xla_stalloc.hlo import HloError
    from xla_stalloc.report.analyze import analyze_module, open_modules
    from xla_stalloc.report.model import MemoryReport

    try:
        with terminal.progress() as bar:
            task = bar.add_task(f"reading {source}", total=None)
            modules = open_modules(source, name)
            bar.update(task, total=len(modules))
            reports = []
            for module in modules:
                bar.update(task, description=f"analyzing {'and planning ' if plan else ''}{module.name}")
                reports.append(analyze_module(module, plan=plan))
                bar.advance(task)
    except HloError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    report = MemoryReport(tuple(reports))
    if as_json:
        click.echo(report.to_json())
    else:
        show(report, top)


def show(report: MemoryReport, top: int) -> None:
    """Prints a report as tables."""
    from xla_stalloc.report.text import sections

    for module in report.modules:
        terminal.show(sections(module, top))
