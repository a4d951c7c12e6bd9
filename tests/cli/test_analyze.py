"""`xla-stalloc analyze`: golden text with exact numbers, JSON, and what it refuses."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xla_stalloc.cli.main import main

GOLDEN = Path(__file__).with_name("golden")
MODULE = GOLDEN / "analyze.hlo.txt"


def xla_stalloc(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["analyze", *arguments])


def stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def test_text_is_golden() -> None:
    result = xla_stalloc(str(MODULE))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert stripped(result.stdout) == (GOLDEN / "analyze.txt").read_text().rstrip("\n")


def test_json_has_exact_numbers() -> None:
    result = xla_stalloc(str(MODULE), "--json")
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    (module,) = json.loads(line)["modules"]
    square, row, wide = 256 * 256 * 4, 64 * 256 * 4, 64 * 16 * 256 * 4
    assert module["argument_bytes"] == square + row
    assert module["output_bytes"] == square + row + 4 + 3 * 8  # and a pointer to each
    assert module["alias_bytes"] == square
    assert module["temp_bytes"] == module["temp_peak_live_bytes"] == 3 * wide + square
    assert module["peak_bytes"] == 2 * square + 2 * row + 4 + 3 * 8 - square + 3 * wide + square
    assert module["peak_at"] == "wide.2"
    assert [(b["name"], b["bytes"], b["kind"]) for b in module["live_at_peak"]] == [
        ("wide.0", wide, "temp"),
        ("wide.1", wide, "temp"),
        ("wide.2", wide, "temp"),
        ("copy", square, "temp"),
        ("w", square, "donated"),
        ("x", row, "argument"),
        ("zero", 4, "constant"),
    ]
    assert module["live_at_peak"][0]["source"] == "/home/user/project/train.py:21"
    assert module["live_at_peak"][3]["source"] == "/home/user/project/train.py:42"
    assert module["planned"]["temp_bytes"] < wide + 2 * row
    assert [item["kind"] for item in module["advice"]] == ["avoidable-copy", "live-together"]


def test_without_a_plan_and_with_fewer_lines() -> None:
    result = xla_stalloc(str(MODULE), "--no-plan", "--top", "1")
    assert result.exit_code == 0, result.output
    assert "stock against planned" not in result.stdout
    assert "wide.0" in result.stdout
    assert "and 6 smaller ones" in result.stdout
    assert "wide.1" not in result.stdout
    assert json.loads(xla_stalloc(str(MODULE), "--no-plan", "--json").stdout)["modules"][0]["planned"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "is empty"),
        ("no HLO at all", "expected HLO"),
        ("HloModule broken\nENTRY", "is not valid HLO text"),
        (
            "HloModule m\nENTRY %main (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n",
            "has no schedule yet",
        ),
    ],
)
def test_bad_input_exits_with_2_and_one_clear_line(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "module.txt"
    if content is not None:
        path.write_text(content)
    result = xla_stalloc(str(path))
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert message in line
    assert line.startswith("Error: ")


def test_an_unknown_module_and_a_bad_option_exit_with_2() -> None:
    result = xla_stalloc(str(MODULE), "--module", "jit_other")
    assert result.exit_code == 2
    assert "It has: jit_train_step" in result.stderr
    assert xla_stalloc(str(MODULE), "--top", "-1").exit_code == 2
    assert xla_stalloc().exit_code == 2


def test_progress_is_shown_to_a_terminal_only() -> None:
    program = [sys.executable, "-c", "from xla_stalloc.cli.main import main; main()", "analyze", str(MODULE), "--json"]
    assert subprocess.run(program, capture_output=True, check=True).stderr == b""
    terminal, end = pty.openpty()
    subprocess.run(program, stdout=subprocess.DEVNULL, stderr=end, env={**os.environ, "TERM": "xterm"}, check=True)
    os.close(end)
    shown = os.read(terminal, 1 << 16)
    os.close(terminal)
    assert b"jit_train_step" in shown
