"""``XLA_STALLOC=<mode>`` and the absl flags: planning without a change of code, and nothing at all without them."""

from __future__ import annotations

import json

import pytest
from small_programs import arguments, branches, stock_temp_bytes

from xla_stalloc.inject.settings import Settings

SCRIPT = """
import jax
import planner_doubles as doubles
from small_programs import arguments, branches
from xla_stalloc.inject import hook

with hook.using(doubles.reordering()):
    print("temp", jax.jit(branches).lower(*arguments()).compile().memory_analysis().temp_size_in_bytes)
    jax.jit(branches)(*arguments())
"""

RECORDS = """
import json
import xla_stalloc
for r in xla_stalloc.records():
    print("record", json.dumps([r.module, r.mode, list(r.levers)]))
"""

FLAGS = """
from absl import app
import xla_stalloc.flags

def main(argv):
    exec(PROGRAM)

app.run(main)
"""


def lines(printed, word):
    return [line.removeprefix(word).strip() for line in printed.splitlines() if line.startswith(word)]


def test_the_environment_plans_an_unchanged_script(python, tmp_path):
    printed = python(SCRIPT + RECORDS, XLA_STALLOC="Schedule", XLA_STALLOC_PLAN_DIR=str(tmp_path / "plans"))
    (planned,) = lines(printed, "temp")
    assert int(planned) < stock_temp_bytes(branches, *arguments()) / 2
    records = [json.loads(r) for r in lines(printed, "record")]
    assert ["jit_branches", "schedule", ["temporal"]] in records
    assert list((tmp_path / "plans").glob("jit_branches-*.json"))


@pytest.mark.parametrize(
    "environment",
    [{"XLA_STALLOC": "fastest"}, {"XLA_STALLOC": "full", "XLA_STALLOC_BUDGET_SECONDS": "-1"}],
)
def test_a_wrong_value_is_one_warning_and_stock(python, environment):
    printed = python(SCRIPT + RECORDS, **environment)
    assert lines(printed, "temp") == [str(stock_temp_bytes(branches, *arguments()))]
    assert lines(printed, "record") == []
    (name, value) = list(environment.items())[-1]
    assert printed.count("plans nothing") == 1 and f"{name}={value}" in printed


def test_off_means_off_for_stalloc_jit_too(python):
    printed = python(
        SCRIPT.replace("jax.jit", "stalloc.jit").replace("import jax", "import xla_stalloc as stalloc") + RECORDS,
        XLA_STALLOC="off",
    )
    assert lines(printed, "record") == []


def test_without_the_environment_jax_loads_nothing_of_ours(python):
    program = """
import sys, time
import jax
jax.numpy.zeros(3).block_until_ready()
print("loaded", sorted(m for m in sys.modules if m.startswith("xla_stalloc")))
for name in [m for m in sys.modules if m.startswith("xla_stalloc")]:
    del sys.modules[name]
started = time.perf_counter()
import xla_stalloc.inject.jax_plugin
print("milliseconds", 1e3 * (time.perf_counter() - started))
"""
    printed = python(program)
    loaded = ["xla_stalloc", "xla_stalloc.inject", "xla_stalloc.inject.jax_plugin", "xla_stalloc.plan"]
    assert lines(printed, "loaded") == [str(loaded)]
    assert float(lines(printed, "milliseconds")[0]) < 50
    assert "configuration error" not in printed


def test_flags_plan_a_training_script(python):
    program = f"PROGRAM = {SCRIPT + RECORDS!r}\n{FLAGS}"
    printed = python(program, "--xla_stalloc=schedule", "--xla_stalloc_budget_seconds=0.25")
    assert int(lines(printed, "temp")[0]) < stock_temp_bytes(branches, *arguments()) / 2
    assert json.loads(lines(printed, "record")[-1])[1] == "schedule"


def test_flags_take_their_defaults_from_the_environment_and_win_over_it(python):
    program = f"PROGRAM = {SCRIPT + RECORDS!r}\n{FLAGS}"
    printed = python(program, XLA_STALLOC="report")
    assert json.loads(lines(printed, "record")[-1])[1] == "report"
    assert lines(python(program, "--xla_stalloc=off", XLA_STALLOC="report"), "record") == []


def test_settings_from_an_environment():
    assert Settings.from_environment({}) is None
    assert Settings.from_environment({"XLA_STALLOC": ""}) is None
    settings = Settings.from_environment(
        {"XLA_STALLOC": " FULL ", "XLA_STALLOC_BUDGET_SECONDS": "2", "XLA_STALLOC_PLAN_DIR": "plans"}
    )
    assert settings is not None
    assert (settings.mode, settings.budget_seconds, str(settings.plan_dir)) == ("full", 2.0, "plans")
