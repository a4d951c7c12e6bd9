"""The spatial lever's table: temp bytes under stock XLA, under our orders, and under our orders and offsets.

    python benchmarks/offsets.py [--programs DIR] [--only 'gpt*'] [--steps N] [--json]

Exit code 1 if a limit of `limits.toml` is missed, 2 if a program could not be measured.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import schedule

from xla_stalloc.cli import terminal

LIMITS = tomllib.loads((schedule.HERE / "limits.toml").read_text())
FEWEST_STEPS = 3


@click.command()
@click.option("--programs", "folder", type=schedule.FOLDER, help="A folder with more programs.")
@click.option("--only", multiple=True, help="Names to measure, with wildcards; may be given more than once.")
@click.option("--steps", type=click.IntRange(min=FEWEST_STEPS), default=30, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per program, as soon as it is there.")
def main(folder: Path | None, only: tuple[str, ...], steps: int, as_json: bool) -> None:
    """Measure every program, or some of them, with one lever and with both."""
    folder = folder or schedule.default_folder()
    results = []
    for name in schedule.chosen(folder, only):
        result = measured(name, folder, steps)
        result["missed"] = missed(result)
        results.append(result)
        if as_json:
            click.echo(json.dumps(result))
    if not as_json:
        show(results)
    sys.exit(2 if any("error" in r for r in results) else 1 if any(r["missed"] for r in results) else 0)


def measured(name: str, folder: Path | None, steps: int) -> dict[str, Any]:
    """The figures of mode full, and the temp bytes of mode schedule beside them."""
    both = schedule.in_a_process_of_its_own(name, folder, steps, "full")
    temporal = schedule.in_a_process_of_its_own(name, folder, FEWEST_STEPS, "schedule")
    if "error" in temporal:
        return temporal
    return both | {"temporal_temp_bytes": temporal["temp_bytes"]} if "error" not in both else both


def missed(result: dict[str, Any]) -> list[str]:
    """Which limits a result misses, in words."""
    if "error" in result:
        return [result["error"]]
    limits = LIMITS["offsets"]
    most = round(limits["part_of_live_bytes"] * result["peak_live_bytes"])
    most_of_two = round(limits["part_of_temporal"] * result["temporal_temp_bytes"])
    failures = {
        f"temp above {terminal.size(most)}": result["temp_bytes"] > most,
        f"temp above the {terminal.size(most_of_two)} of one lever": result["temp_bytes"] > most_of_two,
        "other bits than stock": not result["bit_identical"],
        f"step ratio above {limits['step_ratio']}": result["stock_step_seconds"] >= limits["step_seconds_from"]
        and result["step_ratio"] > limits["step_ratio"],
    }
    return [text for text, failed in failures.items() if failed]


def show(results: list[dict[str, Any]]) -> None:
    """Prints the table."""
    columns = (">stock", ">order", ">order + offsets", ">live at once", ">plan s", ">compile s", ">step ms", ">ratio")
    table = terminal.table(
        "temp in MB per device; ratio is planned / stock step", "program", *columns, "bits", "missed"
    )
    for r in results:
        if "error" in r:
            table.add_row(r["name"], *[""] * (len(columns) + 1), r["error"])
            continue
        temps = (r["stock_temp_bytes"], r["temporal_temp_bytes"], r["temp_bytes"], r["peak_live_bytes"])
        table.add_row(
            r["name"],
            *(f"{temp / 1e6:.2f}" for temp in temps),
            f"{r['plan_seconds']:.2f}",
            f"{r['stock_compile_seconds']:.1f}",
            f"{r['stock_step_seconds'] * 1e3:.0f}",
            f"{r['step_ratio']:.2f}",
            "same" if r["bit_identical"] else "DIFFERENT",
            "; ".join(r["missed"]),
        )
    terminal.stdout().print(table)


if __name__ == "__main__":
    main()
