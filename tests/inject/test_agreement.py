"""Several processes run one plan, or all of them stock XLA: real jobs of two and four processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from xla_stalloc.inject import agreement

HERE = Path(__file__).parent


STOCK = {
    "first_fails": ("planning failed", "process 0: planning failed"),
    "another_program": ("process 1 runs stock XLA's order", "has fingerprint"),
    "last_cannot": ("process 1", "lost on purpose"),
}
"""Scenarios that have to end with stock XLA in all processes; parts of the reasons of the first and of the last."""


def job(processes, *scenarios):
    """What every process of a job printed: {scenario: [one result per process]}."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("XLA_STALLOC", "XLA_FLAGS"))}
    environment = {**inherited, "PYTHONPATH": str(HERE), "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    running = [
        subprocess.Popen(
            [sys.executable, str(HERE / "agreeing_process.py"), str(port), str(processes), str(process), *scenarios],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(processes)
    ]
    results = {scenario: [] for scenario in scenarios}
    try:
        for process in running:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            for line in out.splitlines():
                if line.startswith("{"):
                    result = json.loads(line)
                    results[result["scenario"]].append(result)
    finally:
        for process in running:
            process.kill()
    return results


@pytest.fixture(scope="module")
def two():
    return job(2, "planned", "again_alone", "each_for_itself", *STOCK, "silent")


def same(results, key):
    assert len({str(result[key]) for result in results}) == 1
    return results[0][key]


def test_all_run_the_plan_of_the_first(two):
    stock = two["each_for_itself"][0]
    assert same(two["planned"], "levers") == ["temporal"] and same(two["planned"], "reason") == ""
    assert same(two["planned"], "temp") < stock["temp"] / 2
    same(two["planned"], "order")
    same(two["planned"], "bits")


def test_who_compiles_again_alone_does_as_agreed(two):
    first, again = two["again_alone"]
    assert again["levers"] == ["temporal"] and again["order"] == first["order"]
    assert again["seconds"] < agreement.PATIENCE_SECONDS / 10


def test_planning_is_deterministic_without_talking(two):
    same(two["each_for_itself"], "order")


@pytest.mark.parametrize(
    ("scenario", "first", "last"),
    [(scenario, *reasons) for scenario, reasons in STOCK.items()],
)
def test_one_that_cannot_makes_all_run_stock(two, scenario, first, last):
    stock = two["each_for_itself"][0]
    assert same(two[scenario], "levers") == [] and same(two[scenario], "temp") == stock["temp"]
    same(two[scenario], "order")
    same(two[scenario], "bits")
    assert first in two[scenario][0]["reason"] and last in two[scenario][1]["reason"]


def test_silence_is_a_no(two):
    waited, _ = two["silent"]
    assert waited["levers"] == [] and "not all of processes (0, 1) answered" in waited["reason"]
    same(two["silent"], "order")
    same(two["silent"], "bits")


def test_four_processes():
    (results,) = job(4, "planned").values()
    assert len(results) == 4 and same(results, "levers") == ["temporal"]
    same(results, "order")
    same(results, "bits")
