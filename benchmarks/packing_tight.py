"""How long the exact packer needs for hard instances: seconds to a height, per instance and seed.

    python benchmarks/packing_tight.py [--instances DIR] [--only 'A' ...] [--height N] [--seeds 10] [--lowest] [--json]

Seconds are those of the processor, so that other programs do not count.
The default height, 1,048,576 bytes, is the one that MiniMalloc's challenging instances, A to K, are known to fit.
"""

from __future__ import annotations

import fnmatch
import json
import os
import time
from pathlib import Path

import click
import numpy as np

from xla_stalloc.cli import terminal
from xla_stalloc.packing import HeapItem, instance, verify_placement
from xla_stalloc.packing.tight import TightPacker

FOLDER = Path(os.environ.get("XLA_STALLOC_INSTANCES") or Path(__file__).resolve().parents[2] / "shared" / "instances")


@click.command()
@click.option("--instances", "folder", default=FOLDER, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", multiple=True, default=("[A-K]",), help="Names, with wildcards; may be given more than once.")
@click.option("--height", default=1_048_576, help="Bytes to reach, or the lower bound where that is higher.")
@click.option("--seeds", default=10, help="How many.")
@click.option("--seconds", default=20.0, help="To give up after, per instance.")
@click.option("--lowest", is_flag=True, help="Do not tell the packer the height: time how long it takes to get there.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per run.")
def main(
    folder: Path, only: tuple[str, ...], height: int, seeds: int, seconds: float, lowest: bool, as_json: bool
) -> None:
    """Pack every instance with every seed."""
    files = {path.name.removesuffix(".gz").removesuffix(".csv"): path for path in sorted(folder.glob("*.csv*"))}
    names = [name for name in files if any(fnmatch.fnmatchcase(name, pattern) for pattern in only)]
    columns = (f">{seed}" for seed in range(seeds))
    table = terminal.table("CPU seconds to the height, by seed", "instance", ">height", *columns)
    totals = np.zeros(seeds)
    for name in names:
        times, target = [], 0
        for seed in range(seeds):
            problem = instance.read(files[name])
            lower, upper, size = problem.lower, problem.upper, problem.size
            begin = time.process_time()
            packer = TightPacker(lower, upper, size, seed=seed)
            target = max(height, packer.lower_bound)
            if lowest:  # it keeps going, until it is low enough for us
                packings = packer.descend(seconds=seconds)
                offsets = next((found.offsets for found in packings if found.height <= target), None)
            else:
                offsets = packer.fit(target, seconds=seconds).offsets
            elapsed = time.process_time() - begin
            if offsets is not None:
                verify_placement(items(lower, upper, size), offsets.tolist(), target, 1)
            times.append(elapsed if offsets is not None else float("inf"))
            if as_json:
                click.echo(json.dumps({"name": name, "seed": seed, "height": target, "seconds": times[-1]}))
        totals += times
        table.add_row(name, f"{target:,}", *(f"{t:.2f}" for t in times))
    table.add_row("all", "", *(f"{t:.2f}" for t in totals))
    if not as_json:
        terminal.stdout().print(table)


def items(lower: np.ndarray, upper: np.ndarray, size: np.ndarray) -> list[HeapItem]:
    """For the verifier, whose lifetimes include their ends."""
    rows = zip(lower.tolist(), (upper - 1).tolist(), size.tolist(), strict=True)
    return [HeapItem(bytes_, [(begin, end)], number) for number, (begin, end, bytes_) in enumerate(rows)]


if __name__ == "__main__":
    main()
