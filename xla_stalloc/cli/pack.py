"""`xla-stalloc pack`: offsets for the buffers of a CSV file."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import click


@click.command()
@click.argument("source", metavar="IN.csv")
@click.option("-o", "--output", required=True, metavar="OUT.csv", help="File for the offsets.")
@click.option("--capacity", type=click.IntRange(min=0), help="Bytes that have to do; by default as few as can be.")
@click.option("--seconds", type=click.FloatRange(min=0), default=3.0, show_default=True, help="Time for the search.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text.")
def pack(source: str, output: str, capacity: int | None, seconds: float, seed: int, as_json: bool) -> None:
    """Find offsets for the buffers in IN.csv that need little memory in all.

    IN.csv has the columns id, lower, upper, size and perhaps alignment, and may be gzipped: a buffer is live from lower
    until just before upper. OUT.csv gets one column more, offset. Exit code 1 means that the capacity was not met.
    """
    from xla_stalloc.packing import instance as instances
    from xla_stalloc.packing.solve import solve

    try:
        instance = instances.read(source)
    except instances.InstanceError as error:
        _fail(str(error))
    placement = solve(instance.problem(capacity), seconds, seed)
    try:
        instances.write(output, instance, placement.offsets)
    except OSError as error:
        _fail(f"{output}: cannot be written: {error.strerror or error}")
    met = capacity is None or placement.height <= capacity
    if as_json:
        figures = {
            "schema": 1,
            "buffers": len(instance.ids),
            "height": placement.height,
            "lower_bound": placement.lower_bound,
            "capacity": capacity,
            "met": met,
            "solver": placement.solver,
            "seconds": placement.seconds,
            "output": output,
        }
        click.echo(json.dumps(figures))
    else:
        click.echo(
            f"height {placement.height:,} bytes, lower bound {placement.lower_bound:,}, "
            f"found by {placement.solver} after {placement.seconds:.2f} s"
        )
        if capacity is not None and not met:
            why = "no packing fits" if capacity < placement.lower_bound else f"nothing lower was found in {seconds:g} s"
            click.echo(f"the capacity of {capacity:,} bytes is not met: {why}", err=True)
    sys.exit(0 if met else 1)


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(2)
