"""Packings of files of buffers: XLA's best fit beside ours, and how long ours took.

    python benchmarks/packing.py [FOLDER] [--only 'A'] [--seconds 3] [--json]

The folder (default: XLA_STALLOC_INSTANCES) holds problems in MiniMalloc's format. Heights are parts of the lower bound,
the most bytes live at once, which not every problem can reach. Exit code 1 if ours is above best fit.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import time
from pathlib import Path
from typing import Any

import click
from packing_tight import FOLDER, items

from xla_stalloc.cli import terminal
from xla_stalloc.packing import best_fit, instance
from xla_stalloc.packing.solve import solve


@click.command()
@click.argument("folder", default=FOLDER, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", multiple=True, default=("*",), help="Names, with wildcards; may be given more than once.")
@click.option("--seconds", default=3.0, show_default=True, help="For each.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per problem.")
def main(folder: Path, only: tuple[str, ...], seconds: float, as_json: bool) -> None:
    """Pack every problem of a folder."""
    files = {path.name.removesuffix(".gz").removesuffix(".csv"): path for path in sorted(folder.glob("*.csv*"))}
    results = [measured(n, files[n], seconds) for n in files if any(fnmatch.fnmatchcase(n, o) for o in only)]
    if as_json:
        for result in results:
            click.echo(json.dumps(result))
    else:
        columns = (">buffers", ">bound", ">best fit", ">seconds", ">ours", ">seconds")
        table = terminal.table("heights as parts of the bound", "problem", *columns, "by")
        for r in results:
            ratios = [f"{r[key] / r['lower_bound']:.4f}" for key in ("best_fit", "height")]
            times = [f"{r[key]:.2f}" for key in ("best_fit_seconds", "seconds")]
            bound = f"{r['lower_bound']:,}"
            table.add_row(r["name"], f"{r['buffers']:,}", bound, ratios[0], times[0], ratios[1], times[1], r["solver"])
        terminal.stdout().print(table)
    sys.exit(any(r["height"] > r["best_fit"] for r in results))


def measured(name: str, path: Path, seconds: float) -> dict[str, Any]:
    """Packs one problem, without a capacity; bytes, seconds."""
    problem = instance.read(path)
    alignment = int(problem.alignment.max(initial=1))
    started = time.perf_counter()
    fit = best_fit(items(problem.lower, problem.upper, problem.size), alignment)
    best_fit_seconds = time.perf_counter() - started
    placement = solve(problem.problem(), seconds=seconds)
    return {
        "name": name,
        "buffers": len(problem.ids),
        "lower_bound": placement.lower_bound,
        "best_fit": fit.height,
        "best_fit_seconds": best_fit_seconds,
        "height": placement.height,
        "seconds": placement.seconds,
        "solver": placement.solver,
    }


if __name__ == "__main__":
    main()
