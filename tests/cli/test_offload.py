"""`xla-stalloc offload`: figures that agree with the report, and errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from xla_stalloc import hlo
from xla_stalloc.cli.main import main
from xla_stalloc.report.offload import offload
from xla_stalloc.scheduling.cost import CARDS

MODULE = Path(__file__).with_name("golden") / "analyze.hlo.txt"
FAST = ("--card", "v100", "--host-gigabytes", "100000", "--smallest-megabytes", "0.01")


def xla_stalloc(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["offload", *arguments])


def test_json_is_the_report() -> None:
    result = xla_stalloc(str(MODULE), *FAST, "--json")
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    expected = offload(hlo.open(MODULE), CARDS["v100"], 1e14, 10_000)
    assert found["schema"] == 1
    assert found["peak_bytes"] == expected.peak_bytes
    assert found["estimated_peak_bytes"] == expected.estimated_peak_bytes
    assert [c["name"] for c in found["chosen"]] == [c.name for c in expected.chosen]


def test_the_table() -> None:
    result = xla_stalloc(str(MODULE), *FAST)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    expected = offload(hlo.open(MODULE), CARDS["v100"], 1e14, 10_000)
    assert f"{hlo.open(MODULE).name}: peak" in result.stdout
    assert all(candidate.name in result.stdout for candidate in expected.chosen)


def test_no_program() -> None:
    result = xla_stalloc("nowhere.pb")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert "nowhere.pb" in line
