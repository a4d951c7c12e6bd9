"""Where text goes: results to stdout, progress to stderr and only if somebody is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from xla_stalloc.report.text import Section


def stdout() -> Console:
    """The console for results."""
    # What goes into a file or a pipe must not be squeezed into the 80 columns that rich assumes there.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def table(title: str, *columns: str) -> Table:
    """An empty table; a column whose name starts with `>` is aligned to the right."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns))
    for column in columns:
        made.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return made


def show(sections: Iterable[Section]) -> None:
    """Prints the sections of a report as tables."""
    console = stdout()
    for section in sections:
        drawn = table(section.title, *section.columns)
        for row in section.rows:
            drawn.add_row(*map(Text, row))  # as Text, since names may hold brackets
        console.print(drawn if section.columns else Text(section.title, style="italic"))
        for note in section.notes:
            console.print(Text(note), soft_wrap=True)
        console.print()


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar that vanishes when it is done; it draws nothing unless stderr is a terminal."""
    console = Console(stderr=True)
    what = TextColumn("{task.description}")
    columns = (SpinnerColumn(), what, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


def size(count: int) -> str:
    """Bytes as `23.3 MB`, as `15.2 kB` below a megabyte."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def duration(seconds: float) -> str:
    """Seconds as `157 ms` below one second, as `1.6 s` above."""
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
