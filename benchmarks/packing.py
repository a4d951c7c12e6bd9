"""Packings of files of buffers: the heaps that others use beside ours, and how long ours took.

    python benchmarks/packing.py [FOLDER] [--only 'A'] [--seconds 3] [--generated] [--json]

The folder (default: XLA_STALLOC_INSTANCES) holds problems in MiniMalloc's format; --generated adds problems of other
shapes, of 5,000 and 30,000 buffers. Heights are parts of the lower bound, the most bytes live at once, which not every
problem can reach. Exit code 1 if ours is above any of the others.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from packing_shapes import SHAPES
from packing_tight import FOLDER

from xla_stalloc import _core
from xla_stalloc._core import OrderedFit, Sections, Sweep, SweepRule
from xla_stalloc.cli import terminal
from xla_stalloc.packing import Problem, instance
from xla_stalloc.packing.solve import solve

SIZES = (5_000, 30_000)
HEAPS = ("best_fit", "online_best_fit", "online_first_fit", "first_fit_by_size")


@click.command()
@click.argument("folder", default=FOLDER, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", multiple=True, default=("*",), help="Names, with wildcards; may be given more than once.")
@click.option("--seconds", default=3.0, show_default=True, help="For each.")
@click.option("--generated", is_flag=True, help="Problems of other shapes as well.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per problem.")
def main(folder: Path, only: tuple[str, ...], seconds: float, generated: bool, as_json: bool) -> None:
    """Pack every problem of a folder."""
    results = [
        measured(name, read, seconds)
        for name, read in problems(folder, generated)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in only)
    ]
    if as_json:
        for result in results:
            click.echo(json.dumps(result))
    else:
        others = (">XLA best fit", ">online best fit", ">online first fit", ">first fit by size")
        table = terminal.table(
            "heights as parts of the bound", "problem", ">buffers", ">bound", *others, ">read, s", ">ours", ">s", "by"
        )
        for r in results:
            ratios = [f"{r[key] / r['lower_bound']:.4f}" for key in (*HEAPS, "height")]
            figures = (f"{r['buffers']:,}", f"{r['lower_bound']:,}", *ratios[:-1], f"{r['read_seconds']:.2f}")
            table.add_row(r["name"], *figures, ratios[-1], f"{r['seconds']:.2f}", r["solver"])
        terminal.stdout().print(table)
    sys.exit(any(r["height"] > min(r[heap] for heap in HEAPS) for r in results))


def problems(folder: Path, generated: bool) -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Names, and how to get what they are of."""
    for path in sorted(folder.glob("*.csv*")):
        yield path.name.removesuffix(".gz").removesuffix(".csv"), lambda path=path: instance.read(path).problem()
    if generated:
        for name, shape in SHAPES.items():
            for size in SIZES:
                yield f"{name} {size}", lambda shape=shape, size=size: shape(np.random.default_rng(0), size)


def measured(name: str, read: Callable[[], Problem], seconds: float) -> dict[str, Any]:
    """Packs one problem, without a capacity; bytes, seconds. Ours comes last, and knows nothing of the others."""
    started = time.perf_counter()
    problem = read()
    read_seconds = time.perf_counter() - started
    others = heaps(problem)
    placement = solve(problem, seconds=seconds)
    return {
        "name": name,
        "buffers": len(problem.size),
        "lower_bound": placement.lower_bound,
        **others,
        "read_seconds": read_seconds,
        "height": placement.height,
        "seconds": placement.seconds,
        "solver": placement.solver,
    }


def heaps(problem: Problem) -> dict[str, int]:
    """Heights in bytes: XLA's heap (the lower of its two orders), allocators that see time go by, and first fit."""
    alignment = int(problem.alignment.max(initial=1))
    padded = -(-problem.size // alignment) * alignment
    numbers = np.arange(len(padded) + 1)
    sections = Sections(problem.lower, problem.upper, padded)
    sweep = Sweep(sections, False)
    by_size = np.lexsort((problem.lower - problem.upper, -padded))
    xla = _core.best_fit(padded, numbers, problem.lower, problem.upper - 1, numbers[:-1], alignment)[1]
    _, online_best = sweep.place(1 << 62, SweepRule.BEST_FIT, 0, 600)
    _, online_first = sweep.place(1 << 62, SweepRule.FIRST_FIT, 0, 600)
    _, first = OrderedFit(sections, numbers, numbers[:-1], problem.alignment).place(by_size, 1 << 62, 600)
    all_offsets = (xla, online_best, online_first, first)
    return {name: int((o + problem.size).max(initial=0)) for name, o in zip(HEAPS, all_offsets, strict=True)}


if __name__ == "__main__":
    main()
