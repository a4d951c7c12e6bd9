"""How long the exact packer needs for hard instances: seconds to a height, per instance and seed.

    python benchmarks/packing_tight.py [--instances DIR] [--only 'A' ...] [--height N] [--seeds 10] [--lowest] [--json]

The default height, 1,048,576 bytes, is the one that MiniMalloc's challenging instances, A to K, are known to fit.
"""

from __future__ import annotations

import csv
import fnmatch
import gzip
import json
import os
import time
from pathlib import Path

import click
import numpy as np

from xla_stalloc.cli import terminal
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
    files = {path.name.split(".")[0]: path for path in sorted(folder.glob("*.csv*"))}
    names = [name for name in files if any(fnmatch.fnmatchcase(name, pattern) for pattern in only)]
    columns = (f">{seed}" for seed in range(seeds))
    table = terminal.table("seconds to the height, by seed", "instance", ">height", *columns)
    totals = np.zeros(seeds)
    for name in names:
        times, target = [], 0
        for seed in range(seeds):
            lower, upper, size = read(files[name])
            begin = time.perf_counter()
            packer = TightPacker(lower, upper, size, seed=seed)
            target = max(height, packer.lower_bound)
            if lowest:
                offsets = packer.lowest(target, seconds=seconds).offsets
            else:
                offsets = packer.fit(target, seconds=seconds).offsets
            times.append(time.perf_counter() - begin)
            reached = offsets is not None and int((offsets + size).max()) <= target
            if as_json:
                click.echo(json.dumps({"name": name, "seed": seed, "height": target, "seconds": times[-1], "ok": reached}))
            times[-1] = times[-1] if reached else float("inf")
        totals += times
        table.add_row(name, f"{target:,}", *(f"{t:.2f}" for t in times))
    table.add_row("all", "", *(f"{t:.2f}" for t in totals))
    if not as_json:
        terminal.stdout().print(table)


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower and upper times and sizes."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as rows:
        items = [(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(rows)]
    lower, upper, size = np.array(items, np.int64).T.copy()
    return lower, upper, size


if __name__ == "__main__":
    main()
