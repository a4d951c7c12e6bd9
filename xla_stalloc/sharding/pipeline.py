"""A pipeline under a schedule, in figures: time, bubble, balance, and whether each device has the memory."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from xla_stalloc.sharding.schedules import generate
from xla_stalloc.sharding.simulate import Simulation, simulate
from xla_stalloc.sharding.stage import Pipeline

SCHEMA = 1
"""Version of the JSON form; new keys do not raise it."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a step takes of one device.

    Attributes:
      name: of the device.
      stages: names of the stages on it.
      peak_bytes: the most that it holds at once: state, gradients, activations, transfers, temps.
      state_bytes: the part that it holds all the time.
      memory_bytes: its budget; None: not limited.
      busy_seconds: in which it runs programs.
    """

    name: str
    stages: tuple[str, ...]
    peak_bytes: int
    state_bytes: int
    memory_bytes: int | None
    busy_seconds: float

    @property
    def spare_bytes(self) -> int | None:
        """Left of the budget at the peak; negative: that much is missing. None: not limited."""
        return None if self.memory_bytes is None else self.memory_bytes - self.peak_bytes


@dataclass(frozen=True, slots=True)
class PipelineUse:
    """What a step of a pipeline takes.

    Attributes:
      schedule: its name.
      micro_batches: per step.
      seconds: of a step.
      bubble: the part of the devices' time in which they run nothing, 0 to 1.
      balance: busy time of the average device over that of the busiest, 0 to 1.
      devices: one for each.
    """

    schedule: str
    micro_batches: int
    seconds: float
    bubble: float
    balance: float
    devices: tuple[DeviceUse, ...]

    @property
    def fits(self) -> bool:
        """Whether no device needs more than it has."""
        return all(device.spare_bytes is None or device.spare_bytes >= 0 for device in self.devices)

    @property
    def missing_bytes(self) -> int:
        """Over all devices that do not have enough."""
        return sum(-min(device.spare_bytes or 0, 0) for device in self.devices)

    def to_dict(self) -> dict[str, Any]:
        """The fields, and what follows from them, as plain data."""
        devices = [{**dataclasses.asdict(device), "spare_bytes": device.spare_bytes} for device in self.devices]
        return {"schema": SCHEMA, **dataclasses.asdict(self), "fits": self.fits, "devices": devices}


def use(pipeline: Pipeline, schedule: str, micro_batches: int) -> PipelineUse:
    """Simulates a step.

    Args:
      pipeline: stages and devices.
      schedule: one of `schedules.SCHEDULES`.
      micro_batches: per step.

    Raises:
      PipelineError: the schedule does not go with the pipeline.
    """
    return summarize(pipeline, schedule, micro_batches, simulate(pipeline, generate(schedule, pipeline, micro_batches)))


def summarize(pipeline: Pipeline, schedule: str, micro_batches: int, simulation: Simulation) -> PipelineUse:
    """The figures of a simulated step; `schedule` is what to call it."""
    devices = range(len(pipeline.devices))
    busy = [simulation.busy_nanoseconds(device) for device in devices]
    return PipelineUse(
        schedule=schedule,
        micro_batches=micro_batches,
        seconds=simulation.nanoseconds / 1e9,
        bubble=1 - sum(busy) / (len(busy) * simulation.nanoseconds),
        balance=sum(busy) / (len(busy) * max(busy)),
        devices=tuple(
            DeviceUse(
                name=pipeline.devices[device].name,
                stages=_names(pipeline, device),
                peak_bytes=simulation.peak_bytes(device),
                state_bytes=simulation.state_bytes[device],
                memory_bytes=pipeline.devices[device].memory_bytes,
                busy_seconds=busy[device] / 1e9,
            )
            for device in devices
        ),
    )


def _names(pipeline: Pipeline, device: int) -> tuple[str, ...]:
    return tuple(stage.name for stage in pipeline.stages[device :: len(pipeline.devices)])
