"""Which split, schedule and number of micro-batches fits a model on devices, the fastest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

from xla_stalloc.sharding.layers import Layer, stage_of
from xla_stalloc.sharding.pipeline import PipelineUse, use
from xla_stalloc.sharding.schedules import SCHEDULES
from xla_stalloc.sharding.split import Bounds, fastest_split
from xla_stalloc.sharding.stage import Device, Link, Pipeline, PipelineError, Stage

_EFFORT = 400_000  # tasks that are simulated to improve one split: a few seconds


@dataclass(frozen=True)
class Model:
    """Layers, where they may run, and what their figures are of.

    Attributes:
      layers: in the order of the model.
      devices: in the order of the pipeline.
      micro_batches: per step, of which the layers' figures are one.
      link: between the devices.
      overhead_seconds: that each program takes besides its layers.
    """

    layers: Sequence[Layer]
    devices: Sequence[Device]
    micro_batches: int
    link: Link = field(default_factory=Link)
    overhead_seconds: float = 0.0

    def stage(self, begin: int, end: int, micro_batches: int) -> Stage:
        """The layers from begin up to end as a stage, when a step has so many micro-batches."""
        return stage_of(self.layers[begin:end], micro_batches / self.micro_batches, self.overhead_seconds)

    def pipeline(self, bounds: Bounds, micro_batches: int) -> Pipeline:
        """The pipeline that a split makes."""
        stages = [self.stage(begin, end, micro_batches) for begin, end in pairwise(bounds)]
        return Pipeline(stages, self.devices, self.link)


@dataclass(frozen=True)
class Choice:
    """A split and what it comes to.

    Attributes:
      bounds: where stages begin, and the number of layers.
      use: the simulated step.
    """

    bounds: Bounds
    use: PipelineUse


def choose(
    model: Model, schedules: Sequence[str], micro_batches: Sequence[int], chunks: Sequence[int] = (2, 4)
) -> list[Choice]:
    """The best split found for each schedule and number of micro-batches: those that fit first, the fastest first.

    Each starts from the split whose slowest stage is the fastest, among those that seem to fit, and is improved by
    handing on layers as long as the simulated step fits better or gets faster.

    Args:
      model: layers and devices.
      schedules: names from `schedules.SCHEDULES`.
      micro_batches: numbers to try.
      chunks: for the interleaved schedule, stages per device to try.

    Raises:
      PipelineError: nothing of this can run at all: too few layers, say.
    """
    unknown = [name for name in schedules if name not in SCHEDULES]
    if unknown:
        raise PipelineError(f"no schedule {unknown[0]!r}; there are {', '.join(SCHEDULES)}")
    found: list[Choice] = []
    refused: list[str] = []
    for name in schedules:
        for each in chunks if name == "interleaved" else (1,):
            for count in micro_batches:
                try:
                    found.append(_choice(model, name, count, each * len(model.devices)))
                except PipelineError as error:
                    refused.append(str(error))
    if not found:
        raise PipelineError(f"no pipeline can run: {'; '.join(dict.fromkeys(refused)) or 'nothing to try'}")
    return sorted(found, key=lambda choice: _key(choice.use))


def _key(found: PipelineUse) -> tuple[int, float]:
    return found.missing_bytes, found.seconds


def _choice(model: Model, name: str, micro_batches: int, stages: int) -> Choice:
    if len(model.layers) < stages:
        raise PipelineError(f"{name}: {len(model.layers)} layers are too few for {stages} stages")
    if micro_batches < 1:
        raise PipelineError(f"{micro_batches} micro-batches: at least 1 is needed")
    best = min(
        (_simulated(model, name, micro_batches, bounds) for bounds in _starts(model, name, micro_batches, stages)),
        key=lambda choice: _key(choice.use),
    )
    left = _EFFORT // (2 * micro_batches * stages)
    improved = True
    while improved:
        improved = False
        for bounds in islice(_neighbours(best.bounds), max(left, 0)):
            left -= 1
            other = _simulated(model, name, micro_batches, bounds)
            if _key(other.use) < _key(best.use):
                best, improved = other, True
    return best


def _simulated(model: Model, name: str, micro_batches: int, bounds: Bounds) -> Choice:
    return Choice(bounds, use(model.pipeline(bounds, micro_batches), name, micro_batches))


def _starts(model: Model, name: str, micro_batches: int, stages: int) -> Iterator[Bounds]:
    """The fastest split of all, and that of those whose stages seem to fit."""
    whole = [model.stage(layer, layer + 1, micro_batches) for layer in range(len(model.layers))]
    seconds = [stage.seconds for stage in whole]
    devices = len(model.devices)

    def fits(stage: int, begin: int, end: int) -> bool:
        budget = model.devices[stage % devices].memory_bytes
        if budget is None:
            return True
        # Micro-batches that are in flight; where stages share a device, each gets an equal part of its memory.
        held = min(micro_batches, devices - stage) if name == "1f1b" else min(micro_batches, devices)
        part = model.stage(begin, end, micro_batches)
        kept = part.activation_bytes * (micro_batches if name == "gpipe" else held)
        needed = part.state_bytes + part.gradient_bytes + kept + part.backward.temp_bytes
        return needed <= budget * devices // stages

    fastest = fastest_split(seconds, stages)
    assert fastest is not None  # there are layers enough, and nothing else was asked for
    yield fastest
    fitting = fastest_split(seconds, stages, fits)
    if fitting is not None:
        yield fitting


def _neighbours(bounds: Bounds) -> Iterator[Bounds]:
    """Splits in which one stage has given a layer to another one; those between them pass theirs on."""
    for width in range(1, len(bounds) - 1):
        for first in range(1, len(bounds) - width):
            for by in (-1, 1):
                moved = [border + by for border in bounds[first : first + width]]
                if bounds[first - 1] < moved[0] and moved[-1] < bounds[first + width]:
                    yield (*bounds[:first], *moved, *bounds[first + width :])
