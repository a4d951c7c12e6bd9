"""`xla-stalloc analyze`: where the memory of a compiled program goes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from xla_stalloc.cli import terminal

if TYPE_CHECKING:
    from xla_stalloc.report.model import MemoryReport


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--module", "name", help="Only the module of this name, e.g. jit_step.")
@click.option("--plan/--no-plan", default=True, show_default=True, help="Also plan, and show what that brings.")
@click.option(
    "--top", type=click.IntRange(min=0), default=20, show_default=True, help="Buffers to list at the peak, by size."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, with all buffers, instead of tables.")
def analyze(sources: tuple[str, ...], name: str | None, plan: bool, top: int, as_json: bool) -> None:
    """Report the memory of the compiled programs in each SOURCE.

    Arguments, outputs, aliases, temps, the peak, what is live there by size and source line, what planning would bring,
    and what the program itself could do.

    SOURCE is a folder written with XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_proto", or a file: HLO as protobuf
    (.pb, also compressed), HLO text, or a serialized executable. Of several programs there is one row each, largest
    first, then the details of the largest; --module shows those of another. What cannot be read is named on stderr.
    """
    from xla_stalloc.hlo import HloError
    from xla_stalloc.report.analyze import analyze_module, assemble, readable

    try:
        with terminal.progress() as bar:
            task = bar.add_task(f"reading {', '.join(sources)}", total=None)
            read = readable(sources, name)
            bar.update(task, total=len(read.modules))
            reports = []
            for module, _ in read.modules:
                bar.update(task, description=f"analyzing {'and planning ' if plan else ''}{module.name}")
                reports.append(analyze_module(module, plan=plan))
                bar.advance(task)
    except HloError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    report = assemble(reports, read.unreadable)
    for part in report.unreadable:
        click.echo(f"Not read: {part.problem}", err=True)
    if as_json:
        click.echo(report.to_json())
    else:
        show(report, top)


def show(report: MemoryReport, top: int) -> None:
    """Prints a report as tables: all modules in one, then the largest in detail."""
    from xla_stalloc.report.text import overview, sections

    if len(report.modules) > 1:
        terminal.show([overview(report.modules)])
    terminal.show(sections(report.modules[0], top))
