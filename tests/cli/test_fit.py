"""`xla-stalloc fit`: JSON, tables, sweeps, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from xla_stalloc.cli.main import main

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def make_step(mesh, *, batch=64):
    x = jax.ShapeDtypeStruct((batch, 256), "float32", sharding=NamedSharding(mesh, P("x")))
    return jax.jit(lambda w, x: w - x.T @ jnp.tanh(x @ w)), (jax.ShapeDtypeStruct((256, 256), "float32"), x)
"""


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XLA_STALLOC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "train.py").write_text(SCRIPT)
    return f"{tmp_path}/train.py:make_step"


def fit(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fit", *arguments])


def test_a_sweep_as_json_and_from_its_file(step: str, tmp_path: Path) -> None:
    results = str(tmp_path / "results.jsonl")
    arguments = (step, "--topology", "cpu:2", "--mesh", "x=*", "--sweep", "batch=64,128,7", "--results", results)
    result = fit(*arguments, "--json", "--workers", "2")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    small, large, odd = document["fits"]
    weights = 256 * 256 * 4
    assert [f["argument_bytes"] - weights for f in (small, large)] == [64 * 256 * 4 // 2, 128 * 256 * 4 // 2]
    assert small["mesh"] == "x=2"
    assert small["flops"] == 2 * (2 * 32 * 256 * 256)
    assert odd["argument_bytes"] is None and "divisible" in odd["reason"]
    assert document["answers"]["pareto"] == [0, 1]
    table = fit(*arguments)
    assert table.exit_code == 0, table.output
    assert "cpu:2 x=2 batch=128" in table.stdout
    assert "largest block" in table.stdout and "memory against arithmetic" in table.stdout


def test_an_estimate_needs_no_compiler(step: str) -> None:
    result = fit(step, "--topology", "cpu:2", "--mesh", "x=2", "--estimate", "--json")
    (found,) = json.loads(result.stdout)["fits"]
    assert found["compile_seconds"] is None and found["peak_bytes"] is None
    assert found["estimate_bytes"] >= found["argument_bytes"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gtp", "--topology", "cpu:2", "--mesh", "x=2"), "no model 'gtp'"),
        (("llama_tiny", "--topology", "cpu2", "--mesh", "x=2"), "'cpu2' is no topology"),
        (("llama_tiny", "--topology", "cpu:2", "--mesh", "x=3"), "they must be equal"),
        (("llama_tiny", "--topology", "cpu:2", "--mesh", "x=2"), "split over the mesh axes fsdp and tp, not x"),
        (("llama_tiny", "--topology", "cpu:2", "--mesh", "tp=2", "--set", "batch"), "sets nothing"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(arguments: tuple[str, ...], message: str) -> None:
    result = fit(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
