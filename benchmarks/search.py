"""What each step of the search for an order brings, on the entry computations of real programs.

    python benchmarks/search.py [--programs DIR] [--only 'gpt*'] [--json]

Every program is compiled under both of XLA:CPU's schedulers: breadth first, the default, and memory-optimized.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import click
import programs
from measure import MEMORY_OPTIMIZED
from schedule import FOLDER, default_folder

from xla_stalloc import _core, hlo
from xla_stalloc.cli import terminal
from xla_stalloc.lifetimes import of
from xla_stalloc.scheduling import Graph, lower_bound, solve
from xla_stalloc.scheduling.extract import extract

SCHEDULERS = {"breadth first": {}, "memory-optimized": MEMORY_OPTIMIZED}


@click.command()
@click.option("--programs", "folder", type=FOLDER, help="A folder with more programs.")
@click.option("--only", multiple=True, help="Names to measure, with wildcards; may be given more than once.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per graph.")
def main(folder: Path | None, only: tuple[str, ...], as_json: bool) -> None:
    """Search every program's order, step by step."""
    folder = folder or default_folder()
    chosen = [n for n in programs.names(folder) if not only or any(fnmatch.fnmatchcase(n, o) for o in only)]
    with terminal.progress() as bar:
        task = bar.add_task("", total=len(chosen))
        results = []
        for name in chosen:
            bar.update(task, description=name)
            results += [r for r in measured(name, folder) if r["nodes"]]
            bar.advance(task)
    if as_json:
        for result in results:
            click.echo(json.dumps(result))
        sys.exit()
    steps = ("XLA's", "shallowest first", "tightened", "cut", "best", "bound")
    columns = (">nodes", *(f">{step}" for step in steps), ">gap %", ">seconds")
    table = terminal.table("peaks in MB", "program", "scheduler", *columns)
    for r in results:
        peaks = (f"{r[step] / 1e6:.2f}" for step in steps)
        gap = 100 * (r["best"] / r["bound"] - 1) if r["bound"] else 0.0
        table.add_row(r["name"], r["scheduler"], str(r["nodes"]), *peaks, f"{gap:.2f}", f"{r['seconds']:.2f}")
    terminal.stdout().print(table)


def measured(name: str, folder: Path | None) -> Iterator[dict[str, Any]]:
    """Compiles a program under each scheduler and searches the order of its entry computation; peaks in bytes."""
    program = programs.load(name, folder)
    for scheduler, options in SCHEDULERS.items():
        module = hlo.open(program.lower().compile(compiler_options=options))
        graph = extract(module, of(module), module.entry, pin_collectives=False).graph
        yield {"name": name, "scheduler": scheduler, "nodes": graph.nodes, **search(graph)}


def search(graph: Graph) -> dict[str, Any]:
    """Peaks in bytes after each of the first steps, each on top of the one before, and after the whole search."""
    shallowest = _core.depth_first(graph.kernel, _core.ChildOrder.SHALLOWEST_FIRST)
    tightened = _core.tighten(graph.kernel, shallowest)
    cut = _core.cut_peaks(graph.kernel, tightened)
    started = time.perf_counter()
    found = solve(graph)
    return {
        "seconds": time.perf_counter() - started,
        "XLA's": graph.peak(graph.incumbent),
        "shallowest first": graph.peak(shallowest),
        "tightened": graph.peak(tightened),
        "cut": graph.peak(cut),
        "best": found[0].peak_bytes,
        "bound": lower_bound(graph),
    }


if __name__ == "__main__":
    main()
