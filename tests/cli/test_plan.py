"""`xla-stalloc plan`: writes a plan that can be applied, says what it brings, refuses what it cannot plan."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

import xla_stalloc as stalloc
from xla_stalloc import hlo
from xla_stalloc.cli.main import main

MODULE = Path(__file__).with_name("golden") / "analyze.hlo.txt"


def xla_stalloc(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def test_the_plan_is_written_and_applies(tmp_path: Path) -> None:
    path = tmp_path / "step.plan"
    result = xla_stalloc(str(MODULE), "-o", str(path))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    plan = stalloc.MemoryPlan.load(path)
    assert result.stdout.rstrip("\n") == plan.explain()
    assert "copies of donated arguments left out: copy" in result.stdout
    (planned,) = stalloc.analyze(plan.apply(hlo.open(MODULE))).modules
    assert planned.temp_bytes == plan.record.temp_bytes < plan.record.stock_temp_bytes


def test_json_has_the_figures(tmp_path: Path) -> None:
    result = xla_stalloc(str(MODULE), "-o", str(tmp_path / "step.plan"), "--json")
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert found["schema"] == 1
    assert 0 < found["lower_bound_bytes"] <= found["temp_bytes"] < found["stock_temp_bytes"] == 3407872
    assert found["removed_copies"] == 1


def test_bad_input_and_output_exit_with_2_and_one_line(tmp_path: Path) -> None:
    for arguments in (
        ["absent.pb", "-o", str(tmp_path / "p")],
        [str(MODULE), "-o", str(tmp_path / "absent" / "p")],
        [str(MODULE), "-o", str(tmp_path / "p"), "--module", "other"],
    ):
        result = xla_stalloc(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
    assert xla_stalloc(str(MODULE)).exit_code == 2
    assert list(tmp_path.iterdir()) == []
