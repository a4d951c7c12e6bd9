"""`xla-stalloc view`: files that are whole, figures that are right, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from click.testing import CliRunner

from xla_stalloc import hlo
from xla_stalloc.cli.main import main
from xla_stalloc.report.map.colours import SCHEMES


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose copies a better order avoids."""
    step = jax.jit(lambda x: (x.at[0].add(1), x[0] * 2), donate_argnums=0)
    compiled = step.lower(jax.ShapeDtypeStruct((1000, 50), jnp.float32)).compile()
    path = tmp_path_factory.mktemp("view") / "step.pb"
    path.write_bytes(hlo.open(compiled).proto.SerializeToString())
    return path


def run(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["view", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("colour", SCHEMES)
def test_writes_page_and_picture(source: Path, tmp_path: Path, colour: str) -> None:
    pytest.importorskip("matplotlib")
    page, png = tmp_path / "map.html", tmp_path / "map.png"
    code, output = run(source, source, "-o", page, "--png", png, "--plan", "--color", colour, "--json")
    told = json.loads(output)
    assert code == 0 and told["schema"] == 1 and told["reason"] == ""
    stock, planned = told["maps"]
    assert (stock["title"], planned["title"]) == ("stock", "planned")
    assert len(told["modules"]) == 2 and planned["temp_bytes"] <= stock["temp_bytes"]
    assert stock["bands"]["state"] == 1000 * 50 * 4
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and "https://cdn.bokeh.org" not in text
    assert png.read_bytes().startswith(b"\x89PNG")
    assert page.stat().st_mode & 0o044  # others may read it, as far as the umask lets them
    assert {path.name for path in tmp_path.iterdir()} == {"map.html", "map.png"}


def test_text(source: Path, tmp_path: Path) -> None:
    code, output = run(source, "-o", tmp_path / "map.html")
    assert code == 0
    assert output.startswith("stock: ") and f"written: {tmp_path / 'map.html'}" in output


def test_bad_usage_and_input(source: Path, tmp_path: Path) -> None:
    code, output = run(source)
    assert code == 2 and "give a file to write" in output
    code, output = run(source, "-o", tmp_path / "missing" / "map.html")
    assert code == 2 and "cannot be written" in output
    code, output = run(source, "--module", "none", "-o", tmp_path / "map.html")
    assert code == 2 and "has no module named 'none'" in output
    damaged = tmp_path / "damaged.pb"
    damaged.write_bytes(source.read_bytes()[:-20])
    code, output = run(damaged, "-o", tmp_path / "map.html")
    assert code == 2 and "Error: " in output and "Traceback" not in output
    assert not (tmp_path / "map.html").exists()


def test_options_know_the_schemes() -> None:
    option = next(parameter for parameter in main.commands["view"].params if parameter.name == "colour")  # type: ignore[attr-defined]
    assert tuple(option.type.choices) == SCHEMES
