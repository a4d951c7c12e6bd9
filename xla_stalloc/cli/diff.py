"""`xla-stalloc diff`: what grew and what shrank between two compiles."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from xla_stalloc.cli import terminal
from xla_stalloc.cli.options import GrowthType

if TYPE_CHECKING:
    from xla_stalloc.report.diff import Diff
    from xla_stalloc.report.sizes import Growth


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--module", "name", help="Only the module of this name, e.g. jit_step.")
@click.option("--fail-if-more", "growth", type=GrowthType(), help="Exit with 1 if a peak grew by more: 2% or 64MB.")
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True, help="Source lines to list.")
@click.option("--markdown", is_flag=True, help="Print a summary for a pull request on GitHub.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of tables.")
def diff(
    before: str, after: str, name: str | None, growth: Growth | None, top: int, markdown: bool, as_json: bool
) -> None:
    """Compare the memory of the compiled programs in A with that of those in B.

    Peak, temps, arguments and outputs, and what is live at the peak by source line and kind. A and B are what `analyze`
    takes; the modules of dump folders are matched by name and program.
    """
    if markdown and as_json:
        raise click.UsageError("give --markdown or --json, not both")
    from xla_stalloc.hlo import HloError
    from xla_stalloc.report import diff_text
    from xla_stalloc.report.diff import diff as compared

    try:
        with terminal.progress() as bar:
            bar.add_task(f"comparing {before} and {after}", total=None)
            found = compared(before, after, name=name)
    except HloError as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    if growth and not found.modules:
        click.echo(f"Error: no module of {after} is in {before}, so nothing can be checked; give --module", err=True)
        sys.exit(2)
    failed = found.grew_beyond(growth) if growth else ()
    verdict = f"peak grew by more than {growth}, or is not known: {', '.join(failed)}" if failed else ""
    if as_json:
        click.echo(found.to_json())
    elif markdown:
        click.echo(diff_text.markdown(found, top, verdict), nl=False)
    else:
        _show(found, top)
    if verdict:
        click.echo(verdict, err=True)
    sys.exit(1 if failed else 0)


def _show(found: Diff, top: int) -> None:
    from xla_stalloc.report.diff_text import sections

    terminal.show(sections(found, top))
