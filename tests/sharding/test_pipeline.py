"""Pipelines against closed forms of the literature, and against a simulator that goes second by second."""

from __future__ import annotations

import random

import numpy as np
import pipeline_ticks as ticks
import pytest

from xla_stalloc.sharding.pipeline import use
from xla_stalloc.sharding.schedules import SCHEDULES, generate
from xla_stalloc.sharding.simulate import DeadlockError, simulate
from xla_stalloc.sharding.stage import Device, Link, Phase, Pipeline, PipelineError, Program, Stage, Task

UNIT = 10


def even(devices: int, chunks: int = 1, forward: float = 2, inputs: float = 2, weights: float = 2) -> Pipeline:
    """Equal stages that keep `UNIT` bytes per micro-batch, without transfers."""
    stage = {
        "forward": Program(forward),
        "backward": Program(inputs + weights),
        "input_gradient": Program(inputs),
        "weight_gradient": Program(weights),
        "activation_bytes": UNIT,
        "kept_bytes": UNIT,
    }
    stages = [Stage(f"stage {s}", **stage) for s in range(devices * chunks)]  # type: ignore[arg-type]
    return Pipeline(stages, [Device(f"device {d}") for d in range(devices)])


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 1), (4, 8), (5, 3), (8, 32)])
def test_bubble_with_a_flush(name: str, p: int, m: int) -> None:
    found = use(even(p), name, m)
    assert found.bubble == pytest.approx((p - 1) / (m + p - 1))
    assert found.seconds == pytest.approx(6 * (m + p - 1))
    kept = [min(m, p - i) if name == "1f1b" else m for i in range(p)]
    assert [device.peak_bytes for device in found.devices] == [UNIT * k for k in kept]


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 2, 8), (4, 3, 12), (8, 4, 16)])
def test_bubble_of_interleaved_stages(p: int, v: int, m: int) -> None:
    found = use(even(p, v), "interleaved", m)
    # Each chunk is as long as a stage of the others, so the bubble beside v times the work stays what it was.
    assert found.seconds == pytest.approx(6 * (v * m + p - 1))
    assert found.bubble == pytest.approx((p - 1) / (v * m + p - 1))
    first = found.devices[0].peak_bytes // UNIT
    assert first == min(m * v, 2 * (p - 1) + (v - 1) * p + 1)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (6, 20)])
@pytest.mark.parametrize(("forward", "inputs", "weights"), [(2, 2, 2), (2, 3, 1), (3, 3, 2)])
def test_zero_bubble_keeps_what_1f1b_keeps_and_idles_less(
    p: int, m: int, forward: int, inputs: int, weights: int
) -> None:
    found = use(even(p, 1, forward, inputs, weights), "zero-bubble", m)
    work = m * (forward + inputs + weights)
    assert found.seconds == pytest.approx(work + (p - 1) * (forward + inputs - weights))
    assert [device.peak_bytes for device in found.devices] == [UNIT * p] * p


def any_pipeline(random: random.Random, name: str) -> tuple[Pipeline, int]:
    devices = random.randint(1, 4)
    chunks = random.randint(1, 3) if name == "interleaved" else 1
    split = name == "zero-bubble"

    def program() -> Program:
        return Program(random.randint(1, 5), random.randint(0, 9))

    stages = [
        Stage(
            f"stage {s}",
            program(),
            program(),
            program() if split else None,
            program() if split else None,
            program() if random.random() < 0.5 else None,
            *(random.randint(0, 30) for _ in range(2)),
            activation_bytes=random.randint(10, 30),
            kept_bytes=random.randint(0, 15),
            deferred_bytes=random.randint(0, 9),
            output_bytes=random.randint(5, 30),
        )
        for s in range(devices * chunks)
    ]
    link = Link(random.choice([1.0, float("inf")]), random.randint(0, 3))
    batches = devices * random.randint(1, 2) if name == "interleaved" else random.randint(1, 6)
    return Pipeline(stages, [Device(f"device {d}") for d in range(devices)], link), batches


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("seed", range(12))
def test_equals_a_simulation_second_by_second(name: str, seed: int) -> None:
    pipeline, micro_batches = any_pipeline(random.Random(seed), name)
    schedule = generate(name, pipeline, micro_batches)
    found = simulate(pipeline, schedule)
    seconds, held = ticks.step(pipeline, schedule)
    assert found.nanoseconds == seconds * 1_000_000_000
    for device, expected in enumerate(held):
        times, bytes = found.memory(device)
        last = np.searchsorted(times, 1_000_000_000 * np.arange(seconds), side="right") - 1
        sampled = [int(bytes[i]) if i >= 0 else found.state_bytes[device] for i in last]
        assert sampled == expected
        assert found.peak_bytes(device) == max(expected)
        without_optimizer = [s for s in pipeline.stages[device :: len(pipeline.devices)] if s.optimizer is None]
        left = sum(stage.gradient_bytes for stage in without_optimizer)
        assert bytes[-1] - found.state_bytes[device] == left, "nothing but gradients is left at the end"


def test_devices_that_wait_for_each_other() -> None:
    pipeline = even(2)
    forward, backward = Phase.FORWARD, Phase.BACKWARD
    first = [Task(forward, 0, 0), Task(backward, 0, 0), Task(forward, 0, 1), Task(backward, 0, 1)]
    second = [Task(forward, 1, 0), Task(forward, 1, 1), Task(backward, 1, 0), Task(backward, 1, 1)]
    with pytest.raises(DeadlockError) as error:
        simulate(pipeline, [first, second])
    assert "device 0 waits to run the backward of stage 0, micro-batch 0, which needs the gradient from stage 1" in str(
        error.value
    )
    assert "device 1 waits to run the forward of stage 1, micro-batch 1, which needs the forward of stage 0" in str(
        error.value
    )


def test_budgets_differ_by_device() -> None:
    stages = even(3).stages
    pipeline = Pipeline(stages, [Device("small", 2 * UNIT), Device("enough", 2 * UNIT), Device("unlimited")])
    found = use(pipeline, "1f1b", 8)
    assert [device.spare_bytes for device in found.devices] == [-UNIT, 0, None]
    assert not found.fits
    assert found.missing_bytes == UNIT
    assert use(pipeline, "1f1b", 2).fits


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda: Stage("s", Program(-1), Program(1)), "forward takes -1 seconds"),
        (lambda: Stage("s", Program(1), Program(1), state_bytes=-1), "state_bytes is -1"),
        (lambda: Stage("s", Program(1, -2), Program(1)), "-2 bytes of temps"),
        (lambda: Stage("s", Program(1), Program(1), Program(1)), "or neither"),
        (lambda: Stage("s", Program(1), Program(1), activation_bytes=3, kept_bytes=4), "nothing more can be kept"),
        (lambda: Link(0), "positive rate"),
        (lambda: Pipeline(even(3).stages, even(2).devices), "3 stages on 2 devices"),
        (lambda: use(even(2), "2f2b", 4), "no schedule '2f2b'"),
        (lambda: use(even(2), "1f1b", 0), "0 micro-batches"),
        (lambda: use(even(2, 2), "1f1b", 4), "one stage per device"),
        (lambda: use(even(4, 2), "interleaved", 6), "a multiple of 4"),
        (lambda: simulate(even(2), [[], [Task(Phase.FORWARD, 0, 0)]]), "on device 1, where that stage is not"),
        (lambda: simulate(even(1), [[Task(Phase.FORWARD, 0, 0)] * 2]), "a task twice"),
        (lambda: simulate(even(1), [[Task(Phase.OPTIMIZER, 0, 0)]]), "no such program"),
        (lambda: simulate(even(2), [[]]), "a schedule of 1 devices"),
    ],
)
def test_what_cannot_be_is_named(run: object, why: str) -> None:
    with pytest.raises(PipelineError, match=why):
        run()  # type: ignore[operator]
