"""The temporal lever's table: for every program, XLA's two orders against ours, and what planning costs.

    python benchmarks/schedule.py [--programs DIR] [--only 'gpt*'] [--steps N] [--json]

Exit code 1 if a limit of `limits.toml` is missed, 2 if a program could not be measured.
"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import programs

from xla_stalloc.cli import terminal
from xla_stalloc.plan.options import MODES

HERE = Path(__file__).resolve().parent
LIMITS = tomllib.loads((HERE / "limits.toml").read_text())
TEMP_LIMITS_FROM_JAX = (0, 12)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.option("--programs", "folder", type=FOLDER, help="A folder with more programs.")
@click.option("--only", multiple=True, help="Names to measure, with wildcards; may be given more than once.")
@click.option("--steps", type=click.IntRange(min=3), default=30, show_default=True)
@click.option("--mode", type=click.Choice(MODES), default="schedule", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per program, as soon as it is there.")
def main(folder: Path | None, only: tuple[str, ...], steps: int, mode: str, as_json: bool) -> None:
    """Measure every program, or some of them, and hold the figures against benchmarks/limits.toml."""
    folder = folder or default_folder()
    results = []
    names = chosen(folder, only)
    with terminal.progress() as bar:
        task = bar.add_task("", total=len(names))
        for name in names:
            bar.update(task, description=name)
            result = in_a_process_of_its_own(name, folder, steps, mode)
            result["missed"] = missed(result)
            results.append(result)
            if as_json:
                click.echo(json.dumps(result))
            bar.advance(task)
    if not as_json:
        show(results)
    sys.exit(2 if any("error" in r for r in results) else 1 if any(r["missed"] for r in results) else 0)


def default_folder() -> Path | None:
    """The folder in XLA_STALLOC_CASES, else the usual one if it is there."""
    if given := os.environ.get("XLA_STALLOC_CASES"):
        return Path(given)
    usual = HERE.parent.parent / "shared" / "cases"
    return usual if usual.is_dir() else None


def chosen(folder: Path | None, only: tuple[str, ...]) -> list[str]:
    """The names of the programs that match, or of all of them.

    Raises:
        click.UsageError: None does.
    """
    names = programs.names(folder)
    matching = [n for n in names if not only or any(fnmatch.fnmatchcase(n, o) for o in only)]
    if not matching:
        raise click.UsageError(f"no program is called {', '.join(only)}; there are {', '.join(names)}")
    return matching


def in_a_process_of_its_own(name: str, folder: Path | None, steps: int, mode: str) -> dict[str, Any]:
    """Runs `measure.py`, so that no program finds the caches, the heap or the device count of another."""
    command = [sys.executable, str(HERE / "measure.py"), name, "--steps", str(steps), "--mode", mode]
    if folder is not None:
        command += ["--programs", str(folder)]
    # Compile times would be those of a warm cache, and stock XLA would be planned, if these got through.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_COMPILATION_CACHE", "XLA_STALLOC"))}
    flags = f"--xla_force_host_platform_device_count={programs.devices(name, folder)}"
    done = subprocess.run(
        command, env=inherited | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}, capture_output=True, text=True
    )
    if done.returncode:
        return {"name": name, "error": (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def missed(result: dict[str, Any]) -> list[str]:
    """Which limits a result misses, in words."""
    if "error" in result:
        return [result["error"]]
    limits = LIMITS["every_program"]
    most_temp = min(result["stock_temp_bytes"], result["memory_optimized_temp_bytes"])
    if (required := required_temp(result)) is not None:
        most_temp = min(most_temp, required)
    most_planning = max(limits["plan_seconds"], limits["plan_part_of_compile"] * result["stock_compile_seconds"])
    long_enough = result["stock_step_seconds"] >= limits["step_seconds_from"]
    failures = {
        f"temp above {terminal.size(most_temp)}": result["temp_bytes"] > most_temp,
        "other bits than stock": not result["bit_identical"],
        f"planning above {terminal.duration(most_planning)}": result["plan_seconds"] > most_planning,
        f"step ratio above {limits['step_ratio']}": long_enough and result["step_ratio"] > limits["step_ratio"],
    }
    return [text for text, failed in failures.items() if failed]


def required_temp(result: dict[str, Any]) -> int | None:
    """The temp bytes that this program must reach on this version of jax, if any."""
    version = tuple(int(part) for part in result["jax"].split(".")[:2])
    return LIMITS["temp_bytes"].get(result["name"]) if version >= TEMP_LIMITS_FROM_JAX else None


def show(results: list[dict[str, Any]]) -> None:
    """Prints the table."""
    columns = (">stock", ">mem-opt", ">ours", ">bound", ">required", ">plan s", ">compile s", ">step ms", ">ratio")
    title = "temp in MB per device; ratio is planned / stock step"
    table = terminal.table(title, "program", *columns, "bits", "missed")
    for r in results:
        if "error" in r:
            table.add_row(r["name"], *[""] * (len(columns) + 1), r["error"])
            continue
        temps = (r["stock_temp_bytes"], r["memory_optimized_temp_bytes"], r["temp_bytes"], r["lower_bound_bytes"])
        required = required_temp(r)
        table.add_row(
            r["name"],
            *(f"{temp / 1e6:.2f}" for temp in temps),
            f"{required / 1e6:.2f}" if required else "",
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
