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
    assert [item["kind"] for item in module["advice"]] == ["better-order", "avoidable-copy", "live-together"]
    assert (
        module["advice"][0]["new_peak_bytes"]
        == module["peak_bytes"] - module["temp_bytes"] + (module["planned"]["temp_bytes"])
    )


def test_without_a_plan_and_with_fewer_lines() -> None:
    result = xla_stalloc(str(MODULE), "--no-plan", "--top", "1")
    assert result.exit_code == 0, result.output
    assert "stock against planned" not in result.stdout
    assert "wide.0" in result.stdout
    assert "and 6 smaller ones" in result.stdout
    assert "wide.1" not in result.stdout.split("live at the peak, while")[1]
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


SMALL = """HloModule small, is_scheduled=true

ENTRY %e (x: f32[8], t: token[], q: s4[6], h: f8e4m3fn[5]) -> f32[8] {
  %x = f32[8]{0} parameter(0), metadata={op_name="x"}
  %t = token[] parameter(1)
  %q = s4[6]{0} parameter(2)
  %h = f8e4m3fn[5]{0} parameter(3)
  %n = f32[8]{0} negate(%x)
  ROOT %c = f32[8]{0} custom-call(%n), custom_call_target="nobody_knows"
}
"""


def test_several_sources_have_a_row_each_largest_first(tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text(SMALL)
    result = xla_stalloc(str(tmp_path / "small.txt"), str(MODULE))
    assert result.exit_code == 0, result.output
    rows = [line.split()[0] for line in result.stdout.splitlines() if "unknown" in line and "KB" not in line]
    assert rows[:2] == ["jit_train_step", "small"]
    assert "details of jit_train_step follow" in result.stdout
    names = [
        module["name"] for module in json.loads(xla_stalloc(str(tmp_path), str(MODULE), "--json").stdout)["modules"]
    ]
    assert names == ["jit_train_step"]  # the folder holds no dump
    (module,) = json.loads(xla_stalloc(str(tmp_path / "small.txt"), "--json").stdout)["modules"]
    assert module["argument_bytes"] == 32 + 0 + 6 + 5  # float8 takes a byte; int4, unless packed, does too
    assert module["temp_bytes"] == 32


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    from xla_stalloc import hlo

    whole = hlo.open(MODULE).proto.SerializeToString()
    (tmp_path / "module_0001.jit_a.cpu_after_optimizations.hlo.pb").write_bytes(whole)
    (tmp_path / "module_0002.jit_b.cpu_after_optimizations.hlo.pb").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "module_0003.jit_c.cpu_after_optimizations.hlo.pb").write_bytes(b"")
    (tmp_path / "module_0004.jit_d.cpu_after_optimizations.hlo.pb").write_bytes(b"\x89PNG\r\n not HLO at all")
    result = xla_stalloc(str(tmp_path), "--no-plan")
    assert result.exit_code == 0, result.output
    assert "jit_train_step" in result.stdout
    lines = result.stderr.splitlines()
    assert [part in line for part, line in zip(("jit_b", "jit_c", "jit_d"), lines, strict=True)] == [True] * 3
    assert all(line.startswith("Not read: ") for line in lines)
    told = json.loads(xla_stalloc(str(tmp_path), "--no-plan", "--json").stdout)
    assert len(told["modules"]) == 1
    assert [Path(part["source"]).name[:11] for part in told["unreadable"]] == [f"module_000{n}" for n in (2, 3, 4)]
    (tmp_path / "module_0001.jit_a.cpu_after_optimizations.hlo.pb").unlink()
    result = xla_stalloc(str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")


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
