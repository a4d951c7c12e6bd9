"""A schedule in time: when each task runs, and what each device holds meanwhile.

Times are whole nanoseconds, so that all processes of a job see the same step.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.sharding.schedules import Schedule
from xla_stalloc.sharding.stage import Phase, Pipeline, PipelineError, Program, Task

_Int64 = NDArray[np.int64]


class DeadlockError(PipelineError):
    """Every device that is not done waits for another one; names what each waits for."""


@dataclass(frozen=True)
class Simulation:
    """One step of a pipeline.

    Attributes:
      starts: of each device's tasks, in nanoseconds.
      ends: of each device's tasks, in nanoseconds.
      changes: per device, int64[n] times in order and int64[n] bytes: what is taken (+) and given back (-).
      state_bytes: per device, what it holds all the time.
    """

    starts: Sequence[Sequence[int]]
    ends: Sequence[Sequence[int]]
    changes: Sequence[tuple[_Int64, _Int64]]
    state_bytes: Sequence[int]

    @property
    def nanoseconds(self) -> int:
        """Of the step, until the last task is done."""
        return max(times[-1] for times in self.ends if times)

    def busy_nanoseconds(self, device: int) -> int:
        """In which a device runs a program."""
        return sum(self.ends[device]) - sum(self.starts[device])

    def memory(self, device: int) -> tuple[_Int64, _Int64]:
        """When the memory of a device changes (nanoseconds), and the bytes that it holds from then on."""
        times, bytes = self.changes[device]
        return times, self.state_bytes[device] + np.cumsum(bytes)

    def peak_bytes(self, device: int) -> int:
        """The most that a device holds at once."""
        return max(self.state_bytes[device], int(self.memory(device)[1].max(initial=0)))


def simulate(pipeline: Pipeline, schedule: Schedule) -> Simulation:
    """Runs a schedule: each device takes its tasks in order, each as soon as its inputs are there.

    Memory that a device gives back at a moment is free for what it takes at the same moment. A forward takes its
    activations, its output and its temps when it starts, and gives back its input when it ends; a backward gives back
    the activations and its incoming gradient when it ends, but for what a weight gradient still needs. A transfer
    takes memory on the receiver when it starts, and gives back the sender's when it ends; between stages of one device,
    memory is handed over.

    Raises:
      DeadlockError: devices wait for each other.
      PipelineError: the schedule runs a task on the wrong device, twice, or one that has no program.
    """
    run = _Run(pipeline, schedule)
    run.all()
    return Simulation(run.starts, run.ends, [_sorted(changes) for changes in run.changes], _state_bytes(pipeline))


def _state_bytes(pipeline: Pipeline) -> list[int]:
    held = [0] * len(pipeline.devices)
    for number, stage in enumerate(pipeline.stages):
        held[pipeline.device_of(number)] += stage.state_bytes
    return held


def _sorted(changes: Sequence[int]) -> tuple[_Int64, _Int64]:
    """Times and bytes by time; at equal times, what is given back comes first."""
    times, bytes = np.asarray(changes, dtype=np.int64).reshape(-1, 2).T
    order = np.lexsort((bytes > 0, times))
    return times[order], bytes[order]


class _Run:
    """The state of a simulation; `changes` of a device are pairs of time and bytes, one after the other."""

    def __init__(self, pipeline: Pipeline, schedule: Schedule) -> None:
        self.pipeline = pipeline
        self.schedule = schedule
        self.starts: list[list[int]] = [[] for _ in schedule]
        self.ends: list[list[int]] = [[] for _ in schedule]
        self.changes: list[list[int]] = [[] for _ in schedule]
        self._nanoseconds = [[_nanoseconds(s.program(phase)) for phase in Phase] for s in pipeline.stages]
        self._temps = [[p.temp_bytes if (p := s.program(phase)) else 0 for phase in Phase] for s in pipeline.stages]
        self._sent = [stage.output_bytes for stage in pipeline.stages]
        self._sent[-1] = 0  # what the last stage computes stays there
        self._kept = [
            min(s.kept_bytes, s.activation_bytes + sent) for s, sent in zip(pipeline.stages, self._sent, strict=True)
        ]
        # By phase, stage and micro-batch: when a task was done; when its input from another stage was there.
        self._done: list[list[dict[int, int]]] = [[{} for _ in pipeline.stages] for _ in Phase]
        self._arrived: list[list[dict[int, int]]] = [[{} for _ in pipeline.stages] for _ in Phase]
        self._backwards_left = [0] * len(pipeline.stages)
        self._has_gradients = [False] * len(pipeline.stages)
        self._link_free: dict[tuple[int, int], int] = defaultdict(int)
        self._check()

    def _check(self) -> None:
        if len(self.schedule) != len(self.pipeline.devices):
            raise PipelineError(f"a schedule of {len(self.schedule)} devices for {len(self.pipeline.devices)}")
        for device, tasks in enumerate(self.schedule):
            if len(set(map(tuple, tasks))) < len(tasks):
                raise PipelineError(f"device {device}: the schedule runs a task twice")
            for task in tasks:
                if not 0 <= task.stage < len(self._sent) or self.pipeline.device_of(task.stage) != device:
                    raise PipelineError(f"{task}: the schedule runs it on device {device}, where that stage is not")
                if not self._nanoseconds[task.stage][task.phase]:
                    raise PipelineError(f"{task}: the stage has no such program")
                self._backwards_left[task.stage] += task.phase in (Phase.BACKWARD, Phase.WEIGHT_GRADIENT)

    def all(self) -> None:
        """Runs every task; a device that cannot go on is looked at again when something comes in for it."""
        waiting = deque(range(len(self.schedule)))
        queued = [True] * len(self.schedule)
        while waiting:
            device = waiting.popleft()
            queued[device] = False
            for other in self._go_on(device):
                if not queued[other]:
                    queued[other] = True
                    waiting.append(other)
        stuck = [
            f"device {device} waits to run the {tasks[len(ends)]}, which needs the {self._missing(tasks[len(ends)])}"
            for device, (tasks, ends) in enumerate(zip(self.schedule, self.ends, strict=True))
            if len(ends) < len(tasks)
        ]
        if stuck:
            raise DeadlockError(f"the schedule comes to a stop: {'; '.join(stuck)}")

    def _go_on(self, device: int) -> Iterator[int]:
        """Runs what can run on a device; yields the devices for which something comes in."""
        tasks, starts, ends = self.schedule[device], self.starts[device], self.ends[device]
        now = ends[-1] if ends else 0
        while len(ends) < len(tasks):
            task = tasks[len(ends)]
            ready = self._ready(task)
            if ready is None:
                return
            start = max(now, ready)
            now = start + self._nanoseconds[task.stage][task.phase]
            starts.append(start)
            ends.append(now)
            self._done[task.phase][task.stage][task.micro_batch] = now
            self._remember(task, device, start, now)
            receiver = self._send(task, device, now)
            if receiver is not None and receiver != device:
                yield receiver

    def _ready(self, task: Task) -> int | None:
        """When the inputs of a task are there; None if that is not known yet."""
        phase, stage, micro_batch = task
        if phase is Phase.FORWARD:
            return 0 if stage == 0 else self._arrived[phase][stage].get(micro_batch)
        if phase is Phase.OPTIMIZER:
            return None if self._backwards_left[stage] else 0
        if phase is Phase.WEIGHT_GRADIENT:
            return self._done[Phase.INPUT_GRADIENT][stage].get(micro_batch)
        forward = self._done[Phase.FORWARD][stage].get(micro_batch)
        if forward is None or stage == len(self._sent) - 1:
            return forward
        return self._arrived[Phase.BACKWARD][stage].get(micro_batch)

    def _missing(self, task: Task) -> str:
        phase, stage, micro_batch = task
        if phase is Phase.OPTIMIZER:
            return f"{self._backwards_left[stage]} backwards of stage {stage} that are left"
        own = Phase.INPUT_GRADIENT if phase is Phase.WEIGHT_GRADIENT else Phase.FORWARD
        if phase is Phase.FORWARD:
            return str(Task(Phase.FORWARD, stage - 1, micro_batch))
        if micro_batch not in self._done[own][stage]:
            return str(Task(own, stage, micro_batch))
        return f"gradient from stage {stage + 1}, micro-batch {micro_batch}"

    def _send(self, task: Task, device: int, now: int) -> int | None:
        """Sends what a task has computed for another stage, and returns the device that gets it."""
        phase, stage, micro_batch = task
        if phase is Phase.FORWARD and stage < len(self._sent) - 1:
            bytes, to, arrived = self._sent[stage], stage + 1, self._arrived[Phase.FORWARD]
        elif phase in (Phase.BACKWARD, Phase.INPUT_GRADIENT) and stage > 0:
            bytes, to, arrived = self._sent[stage - 1], stage - 1, self._arrived[Phase.BACKWARD]
        else:
            return None
        receiver = self.pipeline.device_of(to)
        if receiver == device:
            arrived[to][micro_batch] = now
            return receiver
        link = self.pipeline.link
        start = max(now, self._link_free[device, receiver])
        end = start + round(1e9 * (link.latency_seconds + bytes / link.bytes_per_second))
        self._link_free[device, receiver] = arrived[to][micro_batch] = end
        self.changes[receiver] += (start, bytes)
        self.changes[device] += (end, -bytes)
        return receiver

    def _remember(self, task: Task, device: int, start: int, end: int) -> None:
        """Notes what a task takes when it starts, and what it gives back when it ends."""
        phase, number, _ = task
        stage = self.pipeline.stages[number]
        incoming = self._sent[number - 1] if number else 0  # of the input, and of the gradient that goes back
        taken = given = self._temps[number][phase]
        if phase is Phase.FORWARD:
            taken += stage.activation_bytes + self._sent[number]
            given += incoming
        elif phase is Phase.BACKWARD:
            taken += incoming
            given += stage.activation_bytes + self._sent[number]
        elif phase is Phase.INPUT_GRADIENT:
            taken += incoming + stage.deferred_bytes
            given += stage.activation_bytes + self._sent[number] - self._kept[number]
        elif phase is Phase.WEIGHT_GRADIENT:
            given += self._kept[number] + stage.deferred_bytes
        else:
            given += stage.gradient_bytes
        if phase in (Phase.BACKWARD, Phase.WEIGHT_GRADIENT):
            self._backwards_left[number] -= 1
            if not self._has_gradients[number]:
                self._has_gradients[number] = True
                taken += stage.gradient_bytes
        self.changes[device] += (start, taken, end, -given)


def _nanoseconds(program: Program | None) -> int:
    return max(round(1e9 * program.seconds), 1) if program else 0
