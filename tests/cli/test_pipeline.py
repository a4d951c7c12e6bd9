"""`xla-stalloc pipeline`: figures of the schedules, exit codes, and errors that say where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from xla_stalloc.cli.main import main

LAYER = {
    "name": "block",
    "forward_seconds": 0.01,
    "input_gradient_seconds": 0.01,
    "weight_gradient_seconds": 0.01,
    "state_bytes": 3_000_000,
    "activation_bytes": 1_000_000,
    "kept_bytes": 1_000_000,
    "output_bytes": 1000,
    "repeat": 8,
}
PROGRAM = {"seconds": 0.5, "temp_bytes": 7}
STAGE = {"name": "stage", "forward": PROGRAM, "backward": PROGRAM, "activation_bytes": 10, "repeat": 2}


def model(**changes: Any) -> dict[str, Any]:
    devices = [{"name": "gpu", "memory_bytes": 20_000_000, "repeat": 4}]
    return {"devices": devices, "link": {"bytes_per_second": 1e9}, "micro_batches": 8, "layers": [LAYER], **changes}


def stages(**changes: Any) -> dict[str, Any]:
    return {"devices": [{"name": "gpu", "repeat": 2}], "micro_batches": 4, "stages": [STAGE], **changes}


def xla_stalloc(tmp_path: Path, content: Any, *options: str) -> Result:
    path = tmp_path / "pipeline.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return CliRunner().invoke(main, ["pipeline", str(path), *options])


def test_layers_are_split(tmp_path: Path) -> None:
    result = xla_stalloc(tmp_path, model(), "--json")
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert found["schema"] == 1
    assert {choice["schedule"] for choice in found["choices"]} == {"gpipe", "1f1b", "interleaved", "zero-bubble"}
    assert {choice["micro_batches"] for choice in found["choices"]} == {4, 8, 16}
    best = found["choices"][0]
    assert best["fits"]
    assert best["seconds"] == min(choice["seconds"] for choice in found["choices"] if choice["fits"])
    assert all(device["peak_bytes"] <= 20_000_000 for device in best["devices"])
    plain = next(c for c in found["choices"] if c["schedule"] == "1f1b" and c["micro_batches"] == 8)
    assert plain["bounds"] == [0, 2, 4, 6, 8]


def test_stages_are_taken_as_they_are(tmp_path: Path) -> None:
    result = xla_stalloc(tmp_path, stages())
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for text in ("1f1b", "gpipe", "5.0 s", "20.0 %", "stage.0", "yes"):
        assert text in result.stdout
    assert "zero-bubble" not in result.stdout, "its backward is not split"


def test_nothing_fits(tmp_path: Path) -> None:
    devices = [{"name": "a", "memory_bytes": 20}, {"name": "b", "memory_bytes": 1000}]
    result = xla_stalloc(tmp_path, stages(devices=devices), "--schedule", "1f1b")
    assert result.exit_code == 1
    assert "0.0 kB missing" in result.stdout


@pytest.mark.parametrize(
    ("content", "options", "why"),
    [
        ("{", [], "is no JSON"),
        ([], [], "write an object with devices"),
        (model(layer=[]), [], "unknown key 'layer'"),
        (model(stages=[STAGE]), [], "either layers"),
        (model(layers=[]), [], "layers: write a list"),
        (model(layers=[{"name": "a"}]), [], "layers[0]: forward_seconds is missing"),
        (model(layers=[{**LAYER, "state_bytes": 1.5}]), [], "layers[0].state_bytes: 1.5 is not a whole number"),
        (model(layers=[{**LAYER, "state_bytes": -1}]), [], "layers[0].state_bytes: -1 is negative"),
        (model(layers=[{**LAYER, "repeat": 2}]), [], "too few"),
        (model(micro_batches=0), [], "at least 1"),
        (model(micro_batches=None), [], "micro_batches: null is not a whole number"),
        (model(link=3), [], "link: write an object"),
        (model(link={"bytes_per_second": 0}), [], "link: a link of 0.0 bytes per second"),
        (model(), ["--schedule", "fast"], "no schedule 'fast'"),
        (stages(), ["--micro-batches", "8"], "give layers to try other numbers"),
        (stages(stages=[{**STAGE, "forward": {"seconds": "1"}}]), [], "stages[0].forward.seconds"),
        (stages(stages=[{**STAGE, "forward": "fast"}]), [], "stages[0].forward: write an object"),
        (stages(), ["--schedule", "zero-bubble"], "no schedule can run: zero-bubble: stage.0 gives no input gradient"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, content: Any, options: list[str], why: str) -> None:
    result = xla_stalloc(tmp_path, content, *options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert why in line


def test_a_missing_file() -> None:
    result = CliRunner().invoke(main, ["pipeline", "nowhere.json"])
    assert result.exit_code == 2
    assert "nowhere.json: cannot be read: No such file" in result.stderr


def test_the_example_of_the_documentation_fits(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text()
    example = text.split("```json")[1].split("```")[0]
    result = xla_stalloc(tmp_path, example, "--schedule", "1f1b", "--micro-batches", "8", "--json")
    assert result.exit_code == 0, result.output
    (choice,) = json.loads(result.stdout)["choices"]
    small = choice["devices"][-1]
    assert small["name"] == "old gpu"
    assert 0 <= small["spare_bytes"] < 40e9
