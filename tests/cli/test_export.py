"""`xla-stalloc export`: all formats, `pack` on what it writes, and what it says of bad input."""

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
from xla_stalloc.report.exports import FORMATS


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    function = jax.jit(lambda x: [jnp.cumsum(jnp.sin(x) * k)[::2].sum() for k in range(4)])
    compiled = function.lower(jax.ShapeDtypeStruct((1000,), jnp.float32)).compile()
    path = tmp_path_factory.mktemp("export") / "step.pb"
    path.write_bytes(hlo.open(compiled).proto.SerializeToString())
    return path


def run(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("plan", [(), ("--plan",)])
def test_writes_every_format(source: Path, tmp_path: Path, form: str, plan: tuple[str, ...]) -> None:
    path = tmp_path / "out"
    code, output = run("export", source, "--format", form, "-o", path, *plan, "--json")
    told = json.loads(output)
    assert code == 0 and told["schema"] == 1 and told["format"] == form
    assert told["bytes"] == path.stat().st_size > 0
    assert told["title"] == ("planned" if plan else "stock")


def test_pack_reads_the_csv(source: Path, tmp_path: Path) -> None:
    problem, packed = tmp_path / "problem.csv", tmp_path / "packed.csv"
    code, output = run("export", source, "--format", "csv", "-o", problem)
    assert code == 0 and f"for csv written to {problem}" in output
    code, output = run("pack", problem, "-o", packed, "--json", "--seconds", "0.2")
    told = json.loads(output)
    assert code == 0 and 0 < told["lower_bound"] <= told["height"]


def test_bad_usage_and_input(source: Path, tmp_path: Path) -> None:
    code, output = run("export", source, "--format", "csv", "-o", tmp_path / "no" / "out")
    assert code == 2 and "cannot be written" in output
    code, output = run("export", source, "--format", "xml", "-o", tmp_path / "out")
    assert code == 2 and "xml" in output
    code, output = run("export", tmp_path / "missing.pb", "--format", "csv", "-o", tmp_path / "out")
    assert code == 2 and "cannot be read" in output


def test_options_know_the_formats() -> None:
    option = next(parameter for parameter in main.commands["export"].params if parameter.name == "form")  # type: ignore[attr-defined]
    assert tuple(option.type.choices) == tuple(FORMATS)
