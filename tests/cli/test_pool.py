"""`xla-stalloc pool`: from sizes and from compiled programs, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from xla_stalloc.cli.main import main
from xla_stalloc.report.pool import ALLOCATORS

MODULE = Path(__file__).with_name("golden") / "analyze.hlo.txt"
CASE = [
    "--card",
    "184.29GiB",
    "--allocator",
    "cuda_async",
    "--outside",
    "28.6GiB",
    "--resident",
    "18.17GiB",
    "--arena",
    "133.6GiB",
]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["pool", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("fraction", "factor", "code", "verdict"),
    [
        ("0.75", "85", 0, "fits"),
        ("0.75", "88", 0, "marginal"),
        ("0.75", "95", 1, "refused"),
        ("0.83", "95", 1, "refused"),
    ],
)
def test_the_public_case(fraction: str, factor: str, code: int, verdict: str) -> None:
    settings = (*CASE, "--fraction", fraction, "--factor", factor)
    got, output = run(*settings, "--json")
    assert (got, json.loads(output)["verdict"]) == (code, verdict)
    got, output = run(*settings)
    assert got == code and output.startswith(f"{verdict}: cuda_async, fraction {fraction}, factor {factor}")
    assert ("non-pool bytes" in output) == (fraction == "0.83")


def test_compiled_programs() -> None:
    code, output = run(str(MODULE), "--card", "16MB", "--fraction", "0.5", "--json")
    told = json.loads(output)
    wide, square, row = 64 * 16 * 256 * 4, 256 * 256 * 4, 64 * 256 * 4
    assert code == 0 and told["block_of"] == "jit_train_step"
    assert told["block_bytes"] == 3 * wide + square + row + 4 + 3 * 8  # temps, and outputs in memory of their own


def test_bad_usage_and_input(tmp_path: Path) -> None:
    assert run("--block", "1GiB")[0] == 2
    code, output = run("--card", "80 cows", "--block", "1GiB")
    assert code == 2 and "is not a size" in output
    code, output = run("--card", "80GiB")
    assert code == 2 and "no program" in output
    code, output = run("--card", "80GiB", "--block", "1GiB", "--fraction", "75")
    assert code == 2 and "fraction is 75" in output
    code, output = run(str(tmp_path / "missing"), "--card", "80GiB")
    assert code == 2 and "cannot be read" in output


def test_options_know_the_allocators() -> None:
    option = next(parameter for parameter in main.commands["pool"].params if parameter.name == "allocator")  # type: ignore[attr-defined]
    assert tuple(option.type.choices) == ALLOCATORS
