"""Micro-batch schedules of a pipeline: which program runs when on each device.

A schedule is a list of tasks per device. Devices take their lists in order and wait where an input is not there yet,
so that times follow from the order; see `simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from xla_stalloc.sharding.stage import Phase, Pipeline, PipelineError, Task

Schedule = Sequence[Sequence[Task]]
"""The tasks of each device, in order."""


def gpipe(pipeline: Pipeline, micro_batches: int) -> list[list[Task]]:
    """All forwards, then all backwards (Huang et al., 2018, arXiv:1811.06965); keeps all activations."""
    _one_stage_each(pipeline, "gpipe")
    return [_gpipe(stage, micro_batches) for stage in range(len(pipeline.stages))]


def _gpipe(stage: int, micro_batches: int) -> list[Task]:
    return [Task(phase, stage, m) for phase in (Phase.FORWARD, Phase.BACKWARD) for m in range(micro_batches)]


def one_f_one_b(pipeline: Pipeline, micro_batches: int) -> list[list[Task]]:
    """One forward, one backward in turns (Narayanan et al., 2019, PipeDream; its synchronous form with a flush).

    Stage `i` of `p` keeps the activations of no more than `p - i` micro-batches.
    """
    _one_stage_each(pipeline, "1f1b")
    count = len(pipeline.stages)
    return [
        _in_turns(
            [Task(Phase.FORWARD, stage, m) for m in range(micro_batches)],
            [[Task(Phase.BACKWARD, stage, m)] for m in range(micro_batches)],
            warmup=count - 1 - stage,
        )
        for stage in range(count)
    ]


def interleaved(pipeline: Pipeline, micro_batches: int) -> list[list[Task]]:
    """1F1B over several stages per device (Narayanan et al., 2021, arXiv:2104.04473): less bubble, more transfers.

    Raises:
      PipelineError: the micro-batches are no multiple of the devices.
    """
    devices, chunks = len(pipeline.devices), pipeline.chunks
    if micro_batches % devices:
        raise PipelineError(
            f"interleaved: {micro_batches} micro-batches on {devices} devices; take a multiple of {devices}"
        )
    runs = range(micro_batches * chunks)

    def place(run: int) -> tuple[int, int]:
        """Chunk and micro-batch of a device's run-th forward: `devices` micro-batches through each chunk in turn."""
        group, inside = divmod(run, devices * chunks)
        chunk, batch = divmod(inside, devices)
        return chunk, group * devices + batch

    schedule = []
    for device in range(devices):
        places = [place(run) for run in runs]
        forwards = [Task(Phase.FORWARD, chunk * devices + device, m) for chunk, m in places]
        backwards = [[Task(Phase.BACKWARD, (chunks - 1 - chunk) * devices + device, m)] for chunk, m in places]
        warmup = devices - 1 - device if chunks == 1 else 2 * (devices - 1 - device) + (chunks - 1) * devices
        schedule.append(_in_turns(forwards, backwards, warmup))
    return schedule


def zero_bubble(pipeline: Pipeline, micro_batches: int) -> list[list[Task]]:
    """1F1B with weight gradients put off until they fill the bubble: ZB-H1 (Qi et al., 2023, arXiv:2401.10241).

    Stage `i` puts them off by `i` micro-batches: with the activations that 1F1B keeps there, each stage holds those of
    as many micro-batches as the first one does under 1F1B.

    Raises:
      PipelineError: the backward of a stage is not split.
    """
    _one_stage_each(pipeline, "zero-bubble")
    for figures in pipeline.stages:
        if figures.weight_gradient is None:
            raise PipelineError(f"zero-bubble: {figures.name} gives no input gradient and weight gradient of its own")
    count = len(pipeline.stages)
    schedule = []
    for stage in range(count):
        backwards: list[list[Task]] = []
        for m in range(micro_batches):
            backwards.append([Task(Phase.INPUT_GRADIENT, stage, m)])
            if m >= stage:
                backwards[-1].append(Task(Phase.WEIGHT_GRADIENT, stage, m - stage))
        late = range(max(micro_batches - stage, 0), micro_batches)
        forwards = [Task(Phase.FORWARD, stage, m) for m in range(micro_batches)]
        schedule.append(
            _in_turns(forwards, backwards, warmup=count - 1 - stage)
            + [Task(Phase.WEIGHT_GRADIENT, stage, m) for m in late]
        )
    return schedule


SCHEDULES: dict[str, Callable[[Pipeline, int], list[list[Task]]]] = {
    "gpipe": gpipe,
    "1f1b": one_f_one_b,
    "interleaved": interleaved,
    "zero-bubble": zero_bubble,
}
"""Generators by name: (pipeline, micro-batches) -> the tasks of each device."""


def generate(name: str, pipeline: Pipeline, micro_batches: int) -> list[list[Task]]:
    """A schedule of one step, optimizers at its end.

    Raises:
      PipelineError: there is no such schedule, or the pipeline does not go with it.
    """
    if name not in SCHEDULES:
        raise PipelineError(f"no schedule {name!r}; there are {', '.join(SCHEDULES)}")
    if micro_batches < 1:
        raise PipelineError(f"{micro_batches} micro-batches: at least 1 is needed")
    schedule = SCHEDULES[name](pipeline, micro_batches)
    for number, stage in enumerate(pipeline.stages):
        if stage.optimizer is not None:
            schedule[pipeline.device_of(number)].append(Task(Phase.OPTIMIZER, number, 0))
    return schedule


def _one_stage_each(pipeline: Pipeline, name: str) -> None:
    if pipeline.chunks > 1:
        raise PipelineError(
            f"{name}: {len(pipeline.stages)} stages on {len(pipeline.devices)} devices; it runs one stage per device, "
            "several are for the interleaved schedule"
        )


def _in_turns(forwards: Sequence[Task], backwards: Sequence[Sequence[Task]], warmup: int) -> list[Task]:
    """`warmup` forwards, then forward and backward in turns, then the backwards that are left."""
    head = min(warmup, len(forwards))

    def turns() -> Iterator[Sequence[Task]]:
        yield forwards[:head]
        for forward, backward in zip(forwards[head:], backwards, strict=False):
            yield (forward, *backward)
        yield from backwards[len(forwards) - head :]

    return list(chain.from_iterable(turns()))
