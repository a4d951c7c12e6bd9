"""The choice of a split against all splits there are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest

from xla_stalloc.sharding.choose import Model, choose
from xla_stalloc.sharding.layers import Layer, stage_of
from xla_stalloc.sharding.pipeline import use
from xla_stalloc.sharding.split import fastest_split
from xla_stalloc.sharding.stage import Device, Link, PipelineError


def splits(layers: int, stages: int) -> Iterator[tuple[int, ...]]:
    for cuts in combinations(range(1, layers), stages - 1):
        yield (0, *cuts, layers)


@pytest.mark.parametrize("seed", range(40))
def test_no_split_has_a_faster_slowest_stage(seed: int) -> None:
    draw = random.Random(seed)
    layers = draw.randint(1, 9)
    stages = draw.randint(1, layers)
    seconds = [draw.randint(0, 9) for _ in range(layers)]
    bytes = [draw.randint(0, 9) for _ in range(layers)]
    budgets = [draw.randint(5, 40) for _ in range(stages)]

    def fits(stage: int, begin: int, end: int) -> bool:
        return sum(bytes[begin:end]) <= budgets[stage]

    def slowest(bounds: tuple[int, ...]) -> float:
        return max(sum(seconds[a:b]) for a, b in pairwise(bounds))

    fitting = [b for b in splits(layers, stages) if all(fits(s, *ends) for s, ends in enumerate(pairwise(b)))]
    found = fastest_split(seconds, stages, fits)
    if not fitting:
        assert found is None
    else:
        assert found in fitting
        assert slowest(found) == min(map(slowest, fitting))


def layer(draw: random.Random, number: int) -> Layer:
    times = (draw.uniform(0.5, 3) for _ in range(3))
    bytes = (draw.randint(1, 50), draw.randint(1, 50), draw.randint(20, 50), *(draw.randint(1, 20) for _ in range(4)))
    return Layer(f"layer {number}", *times, 0.1, *bytes)


@pytest.mark.parametrize("seed", range(6))
def test_as_good_as_the_best_of_all_splits_or_nearly(seed: int) -> None:
    draw = random.Random(seed)
    layers = [layer(draw, n) for n in range(8)]
    devices = [Device(f"device {d}", draw.randint(300, 500)) for d in range(3)]
    model = Model(layers, devices, micro_batches=4, link=Link(200.0, 0.01))
    for name in ("gpipe", "1f1b", "zero-bubble"):
        all_there_are = [use(model.pipeline(bounds, 4), name, 4) for bounds in splits(8, 3)]
        best = min(all_there_are, key=lambda found: (found.missing_bytes, found.seconds))
        (found,) = choose(model, [name], [4])
        assert found.use == use(model.pipeline(found.bounds, 4), name, 4)
        assert found.use.fits == best.fits
        if best.fits:
            assert found.use.seconds <= 1.05 * best.seconds


def test_what_fits_comes_first_and_the_fastest_of_that() -> None:
    layers = [Layer(f"layer {n}", 1, 1, 1, state_bytes=100, activation_bytes=80, kept_bytes=80) for n in range(8)]
    model = Model(layers, [Device(f"device {d}", 700) for d in range(4)], micro_batches=8)
    found = choose(model, ["gpipe", "1f1b", "interleaved"], [4, 8, 16])
    keys = [(choice.use.missing_bytes, choice.use.seconds) for choice in found]
    assert keys == sorted(keys)
    assert found[0].use.fits
    assert not found[-1].use.fits
    assert found[0].use.schedule != "gpipe", "which keeps every micro-batch"


def test_finer_micro_batches_cost_their_overhead() -> None:
    layers = [Layer("a", 1, 1, 1, 0.5, 7, 7, 100, 50, 0, 30, 11), Layer("b", 2, 1, 1, 0.5, 3, 3, 60, 10, 0, 40, 21)]
    stage = stage_of(layers, finer=2, overhead_seconds=0.25)
    assert (stage.forward.seconds, stage.backward.seconds) == (1.75, 2.25)
    assert stage.input_gradient is not None and stage.input_gradient.seconds == 1.25
    assert stage.optimizer is not None and stage.optimizer.seconds == 1.25
    assert (stage.state_bytes, stage.gradient_bytes, stage.activation_bytes, stage.output_bytes) == (10, 10, 80, 20)
    assert stage.forward.temp_bytes == 11


def test_nothing_that_can_run() -> None:
    model = Model([layer(random.Random(0), 0)], [Device("a"), Device("b")], micro_batches=4)
    with pytest.raises(PipelineError, match="1 layers are too few for 2 stages"):
        choose(model, ["1f1b"], [4])
    with pytest.raises(PipelineError, match="no schedule 'fast'"):
        choose(model, ["fast"], [4])
