"""`xla-stalloc diff`: exit codes for CI, Markdown, JSON, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xla_stalloc.cli.main import main

MODULE = Path(__file__).with_name("golden") / "analyze.hlo.txt"
SQUARE, WIDE = 256 * 256 * 4, 64 * 16 * 256 * 4


@pytest.fixture
def smaller(tmp_path: Path) -> str:
    """The module with broadcasts of half the size."""
    path = tmp_path / "smaller.hlo.txt"
    path.write_text(MODULE.read_text().replace("[64,16,256]", "[64,8,256]"))
    return str(path)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["diff", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_exit_codes(smaller: str) -> None:
    grown = 3 * WIDE // 2
    assert run(smaller, str(MODULE)).exit_code == 0
    assert run(smaller, str(MODULE), "--fail-if-more", str(grown)).exit_code == 0
    assert run(smaller, str(MODULE), "--fail-if-more", "100%").exit_code == 0
    for less in (str(grown - 1), "2%", "1.5MB"):
        result = run(smaller, str(MODULE), "--fail-if-more", less)
        assert result.exit_code == 1 and "jit_train_step" in result.stderr
    assert run(str(MODULE), smaller, "--fail-if-more", "0%").exit_code == 0


def test_text_names_the_lines(smaller: str) -> None:
    text = run(smaller, str(MODULE)).stdout
    for line in ("train.py:21", "train.py:22", "train.py:23"):
        assert line in text
    assert "train.py:42" not in text  # the copy of w is as large as before


def test_json(smaller: str) -> None:
    (module,) = json.loads(run(smaller, str(MODULE), "--json").stdout)["modules"]
    assert module["by_kind"] == [{"name": "temp", "before": 3 * WIDE // 2 + SQUARE, "after": 3 * WIDE + SQUARE}]
    assert [change["name"] for change in module["by_source"]] == [
        f"/home/user/project/train.py:{n}" for n in (21, 22, 23)
    ]


def test_markdown(smaller: str) -> None:
    result = run(smaller, str(MODULE), "--markdown", "--fail-if-more", "64kB")
    assert result.exit_code == 1
    assert result.stdout.startswith("### Memory\n\n**peak grew by more than 64,000 bytes")
    assert "| `jit_train_step` |" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--fail-if-more", "much"], "is not a size"),
        (["--fail-if-more", "-1%"], "is not a percentage"),
        (["--json", "--markdown"], "not both"),
        (["--module", "jit_nothing"], "jit_nothing"),
    ],
)
def test_bad_usage(smaller: str, arguments: list[str], told: str) -> None:
    result = run(smaller, str(MODULE), *arguments)
    assert result.exit_code == 2 and told in result.output


def test_bad_input(tmp_path: Path) -> None:
    result = run(str(MODULE), str(tmp_path / "missing"))
    assert result.exit_code == 2 and "cannot be read" in result.output
