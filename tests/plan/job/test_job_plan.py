"""Plans of whole jobs: what repeats is found, planned requests hit, damaged plans are refused."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xla_stalloc.plan.job import JobPlan, JobPlanError, Trace, TraceError, plan_job
from xla_stalloc.plan.job.cycle import runs_of
from xla_stalloc.plan.job.trace import BEGIN, RELEASE, REQUEST, trace_of


def _jobs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jobs", Path(__file__).with_name("jobs.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


training = _jobs().training


@pytest.mark.parametrize("in_flight", [1, 2, 3])
@pytest.mark.parametrize("eval_every", [0, 10])
def test_every_request_hits_for_as_long_as_the_job_runs(in_flight: int, eval_every: int) -> None:
    plan = plan_job(training(60, in_flight=in_flight, eval_every=eval_every, keep_losses=False))
    job = training(1000, in_flight=in_flight, eval_every=eval_every, keep_losses=False)
    arena = plan.arena(shadow=True)
    arena.replay(**job.arena_events())
    served = arena.statistics()
    assert served.hits == served.requests == len(job.executions.bytes)
    assert served.peak_reserved_bytes <= 1.01 * job.peak_live_bytes


def test_what_the_user_keeps_is_left_to_the_arena_and_costs_no_planned_place() -> None:
    plan = plan_job(training(60, eval_every=10))
    arena = plan.arena(shadow=True)
    arena.replay(**training(300, eval_every=10).arena_events())
    served = arena.statistics()
    assert served.unknown_index == 300  # the losses
    assert served.hits == served.requests - 300
    assert served.occupied == 0


def test_after_a_surprise_the_next_execution_is_at_its_planned_place_again() -> None:
    plan = plan_job(training(40, in_flight=1, keep_losses=False))
    before, after = training(5, in_flight=1, keep_losses=False), training(50, in_flight=1, keep_losses=False)
    programs = (*before.programs, "surprise")
    surprise = [(BEGIN, len(programs) - 1, 0), (REQUEST, 0, 12_345)]
    steps = 4 * 2 + 3  # events of the uploads of the state, and of init
    middle = list(zip(*(c.tolist() for c in (before.operations, before.arguments, before.bytes)), strict=True))
    rest = list(zip(*(c.tolist() for c in (after.operations, after.arguments, after.bytes)), strict=True))[steps:]
    shift = int((before.operations == REQUEST).sum()) + 1 - 5  # 5 requests of the state and init are not made again
    rest = [(o, a + shift if o == RELEASE else a, b) for o, a, b in rest]
    job = trace_of(programs, [*middle, *surprise, *rest])
    arena = plan.arena(shadow=True)
    arena.replay(**job.arena_events())
    served = arena.statistics()
    assert served.unknown_program == 1
    assert served.hits == served.requests - 1


@pytest.mark.parametrize("every", [3, 7, 25])
def test_a_job_may_run_shorter_and_longer_phases_than_the_trace(every: int) -> None:
    plan = plan_job(training(60, eval_every=10, keep_losses=False))
    job = training(200, eval_every=every, keep_losses=False)
    arena = plan.arena(shadow=True)
    arena.replay(**job.arena_events())
    served = arena.statistics()
    assert served.failures == served.unknown_program == served.unknown_index == served.unfit == 0
    assert served.hits >= served.requests / 2
    assert served.peak_reserved_bytes <= 1.5 * job.peak_live_bytes


@given(
    once=st.lists(st.integers(0, 3), max_size=4),
    cycle=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=2, max_size=4),
    turns=st.integers(2, 4),
)
def test_the_cycle_explains_the_end_of_the_trace(
    once: list[int], cycle: list[tuple[int, int]], turns: int
) -> None:
    sequence = np.array(once + [p for _ in range(turns) for p, times in cycle for _ in range(times)], np.int64)
    runs = runs_of(sequence)
    assert np.array_equal(np.repeat(runs.program, runs.length), sequence)
    tail = runs.program[runs.cycle :]
    if runs.period:
        assert len(tail) == runs.period == 1 or len(tail) >= 2 * runs.period
        assert np.array_equal(tail[runs.period :], tail[: -runs.period or None][: max(0, len(tail) - runs.period)])
    collapsed = len(np.flatnonzero(np.diff(sequence))) + 1
    if collapsed > 1 and len({p for p, _ in cycle}) > 1:
        assert runs.period  # what repeats is found


def test_saved_and_loaded_it_is_the_same_plan(tmp_path: Path) -> None:
    plan = plan_job(training(20), {"jax": "0.12.0", "mesh": "4x2"})
    plan.save(tmp_path / "job.json")
    again = JobPlan.load(tmp_path / "job.json")
    assert again.to_json() == plan.to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["job.json"]
    assert again.difference({"jax": "0.12.0", "mesh": "4x2"}) == ""
    assert "mesh was 4x2 when the job was planned and is 8x1 now" in again.difference({"jax": "0.12.0", "mesh": "8x1"})
    assert "device" in again.difference({"jax": "0.12.0", "mesh": "4x2", "device": "cpu"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema", 99),
        ("height", -1),
        ("height", 10),
        ("height", 1 << 62),
        ("height", 7.5),
        ("cycle", 10**6),
        ("offsets", []),
        ("offsets", "all"),
        ("sizes", [1 << 70]),
        ("run_slots", [0]),
        ("programs", [1, 2]),
        ("context", {"jax": 12}),
        ("slot_blocks", None),
    ],
)
def test_a_damaged_plan_is_refused_with_its_file_and_the_first_thing_wrong(
    tmp_path: Path, name: str, value: object
) -> None:
    path = tmp_path / "job.json"
    raw = json.loads(plan_job(training(10)).to_json())
    raw[name] = value
    path.write_text(json.dumps(raw))
    with pytest.raises(JobPlanError, match=r"job\.json: expected a job plan"):
        JobPlan.load(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", "[" * 100_000, '{"schema": 1}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "job.json"
    path.write_text(content)
    with pytest.raises(JobPlanError, match="expected a job plan"):
        JobPlan.load(path)


def test_a_plan_whose_blocks_leave_the_region_gets_no_arena() -> None:
    plan = plan_job(training(10))
    with pytest.raises(JobPlanError, match="above the height"):
        dataclasses.replace(plan, offsets=plan.offsets + plan.height).arena()


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([(REQUEST, 0, 8)], "before any execution"),
        ([(BEGIN, 1, 0)], "no known program"),
        ([(BEGIN, 0, 0), (REQUEST, 0, -8)], "negative"),
        ([(BEGIN, 0, 0), (RELEASE, 0, 0)], "releases no request"),
        ([(BEGIN, 0, 0), (RELEASE, 0, 0), (REQUEST, 0, 8)], "before it is asked for"),
        ([(BEGIN, 0, 0), (REQUEST, 0, 8), (RELEASE, 0, 0), (RELEASE, 0, 0)], "second time"),
    ],
)
def test_a_trace_that_contradicts_itself_names_the_event(events: list[tuple[int, int, int]], problem: str) -> None:
    trace: Trace = trace_of(("f",), events)
    with pytest.raises(TraceError, match=problem):
        plan_job(trace)


def test_an_empty_job_has_an_empty_plan() -> None:
    plan = plan_job(trace_of((), []))
    assert plan.height == 0
    arena = plan.arena(shadow=True)
    assert arena.request(arena.begin(5), 0, 100) == 0
