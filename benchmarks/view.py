"""Seconds and bytes of memory maps: of a module with 20,000 instructions, and of five of them in one arena.

    python benchmarks/view.py [--layers N] [--source FILE] [--copies 1,5] [--json]

The page is opened in Chromium if that and chromedriver are on PATH, else its time is missing. Exit code 1 if a page is
made or opened more slowly than `limits.toml` allows for one module.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import click

from xla_stalloc.cli import terminal

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--window-size=1500,1000",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--use-angle=swiftshader",
)
_IDLE = "return Boolean(window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle)"


@click.command()
@click.option("--layers", type=click.IntRange(min=1), default=155, show_default=True)
@click.option("--source", type=click.Path(exists=True), help="A compiled program in place of the GPT.")
@click.option("--copies", default="1,5", show_default=True, help="Programs in the arena.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON.")
def main(layers: int, source: str | None, copies: str, as_json: bool) -> None:
    """Run `xla-stalloc view` as a process of its own, and open what it writes."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    rows = []
    with tempfile.TemporaryDirectory() as folder, terminal.progress() as bar:
        bar.add_task("compiling and drawing", total=None)
        file = source or _compile(layers, Path(folder) / "step.pb")
        for count in map(int, copies.split(",")):
            page = Path(folder) / f"map{count}.html"
            started = time.perf_counter()
            command = [sys.executable, "-m", "xla_stalloc.cli.main", "view", *[file] * count, "-o", page, "--json"]
            told = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True).stdout)
            seconds = time.perf_counter() - started
            (drawn,) = told["maps"]
            rows.append(
                {
                    "programs": count,
                    "positions": drawn["instructions"],
                    "boxes": drawn["buffers"],
                    "command_seconds": round(seconds, 2),
                    "page_bytes": page.stat().st_size,
                    "open_seconds": _open(page),
                }
            )
    if as_json:
        click.echo(json.dumps(rows))
    else:
        table = terminal.table("memory maps", *(f">{name.replace('_', ' ')}" for name in rows[0]))
        for row in rows:
            table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
        terminal.stdout().print(table)
    limits = tomllib.loads((Path(__file__).parent / "limits.toml").read_text())["view"]
    slow = [
        row
        for row in rows
        if row["programs"] == 1
        and (row["command_seconds"] > limits["command_seconds"] or (row["open_seconds"] or 0) > limits["open_seconds"])
    ]
    sys.exit(1 if slow else 0)


def _compile(layers: int, path: Path) -> Path:
    from xla_stalloc import hlo, models

    spec, mesh = models.get("gpt", layers=layers, width=64, heads=2, batch=2, seq=32), models.make_mesh(1, 1)
    import jax

    compiled = spec.jit(mesh, jax.jit).lower(*spec.arguments(mesh)).compile()
    path.write_bytes(hlo.open(compiled).proto.SerializeToString())
    return path


def _browser() -> Any:
    chromium = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*_OPTIONS, "--enable-unsafe-swiftshader"):
        options.add_argument(option)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.get("about:blank")
    return browser


def _open(page: Path) -> float | None:
    """Seconds until everything is drawn, in a browser that has drawn nothing yet."""
    browser = _browser()
    if browser is None:
        return None
    started = time.perf_counter()
    browser.get(page.as_uri())
    while not browser.execute_script(_IDLE):
        time.sleep(0.01)
    seconds = time.perf_counter() - started
    browser.quit()
    return round(seconds, 2)


if __name__ == "__main__":
    main()
