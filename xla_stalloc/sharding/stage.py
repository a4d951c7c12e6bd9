"""The stages of a pipeline as figures: how long their programs run, what they keep in memory, and where."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class PipelineError(ValueError):
    """Figures or a schedule that make no pipeline; says which, and what to change."""


class Phase(IntEnum):
    """A program of a stage."""

    FORWARD = 0
    BACKWARD = 1
    """All gradients: of the stage's input, which goes to the stage before, and of its weights."""
    INPUT_GRADIENT = 2
    """The part of the backward that the stage before waits for."""
    WEIGHT_GRADIENT = 3
    """The part that nothing but the optimizer waits for."""
    OPTIMIZER = 4


class Task(NamedTuple):
    """One run of a program; the optimizer's has micro-batch 0."""

    phase: Phase
    stage: int
    micro_batch: int

    def __str__(self) -> str:
        """As in `forward of stage 3, micro-batch 7`."""
        batch = "" if self.phase is Phase.OPTIMIZER else f", micro-batch {self.micro_batch}"
        return f"{self.phase.name.lower().replace('_', ' ')} of stage {self.stage}{batch}"


@dataclass(frozen=True, slots=True)
class Program:
    """What one run of a program takes.

    Attributes:
      seconds: it occupies its device; at least one nanosecond counts.
      temp_bytes: in use while it runs.
    """

    seconds: float
    temp_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive layers of a model; all figures are of one micro-batch.

    Attributes:
      name: for people.
      forward: its program.
      backward: its program.
      input_gradient: first part of the backward; None if it is not split.
      weight_gradient: second part of the backward; None if it is not split.
      optimizer: runs once per step; None if there is nothing to update.
      state_bytes: parameters and optimizer state.
      gradient_bytes: accumulated from the first backward until the optimizer is done.
      activation_bytes: what the forward keeps for the backward.
      kept_bytes: of those activations, and of the gradient that comes in, what the weight gradient still needs.
      deferred_bytes: what the input gradient computes for the weight gradient.
      output_bytes: what goes to the next stage; a gradient of as many bytes comes back.
    """

    name: str
    forward: Program
    backward: Program
    input_gradient: Program | None = None
    weight_gradient: Program | None = None
    optimizer: Program | None = None
    state_bytes: int = 0
    gradient_bytes: int = 0
    activation_bytes: int = 0
    kept_bytes: int = 0
    deferred_bytes: int = 0
    output_bytes: int = 0

    def __post_init__(self) -> None:
        """Raises PipelineError for figures that cannot be."""
        if (self.input_gradient is None) != (self.weight_gradient is None):
            raise PipelineError(f"{self.name}: give both the input gradient and the weight gradient, or neither")
        for phase in Phase:
            program = self.program(phase)
            if program and not 0 <= program.seconds < float("inf"):
                what = phase.name.lower().replace("_", " ")
                raise PipelineError(f"{self.name}: its {what} takes {program.seconds} seconds: give a number from 0 up")
            if program and program.temp_bytes < 0:
                raise PipelineError(f"{self.name}: {program.temp_bytes} bytes of temps: bytes cannot be negative")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_bytes") and value < 0:
                raise PipelineError(f"{self.name}: {field.name} is {value}: bytes cannot be negative")
        if self.kept_bytes > self.activation_bytes + self.output_bytes:
            raise PipelineError(
                f"{self.name}: kept_bytes is {self.kept_bytes}, of {self.activation_bytes} bytes of activations and a "
                f"gradient of {self.output_bytes}: nothing more can be kept"
            )

    def program(self, phase: Phase) -> Program | None:
        """The program of a phase."""
        programs = (self.forward, self.backward, self.input_gradient, self.weight_gradient, self.optimizer)
        return programs[phase]

    @property
    def seconds(self) -> float:
        """Of one micro-batch, forward and backward."""
        return self.forward.seconds + self.backward.seconds


@dataclass(frozen=True, slots=True)
class Device:
    """Where stages run.

    Attributes:
      name: for people.
      memory_bytes: its budget; None: not limited.
    """

    name: str
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """What connects every two devices, one way; transfers queue up behind each other and leave the devices free.

    Attributes:
      bytes_per_second: infinite by default.
      latency_seconds: of each transfer.
    """

    bytes_per_second: float = float("inf")
    latency_seconds: float = 0.0

    def __post_init__(self) -> None:
        """Raises PipelineError for a link that carries nothing, or into the past."""
        if not self.bytes_per_second > 0 or not 0 <= self.latency_seconds < float("inf"):
            raise PipelineError(
                f"a link of {self.bytes_per_second} bytes per second and {self.latency_seconds} seconds of latency: "
                "give a positive rate and a latency of at least 0"
            )


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages on devices.

    Attributes:
      stages: in the order of the model.
      devices: stage `s` runs on device `s % len(devices)`; more stages than devices are an interleaved pipeline.
      link: between the devices.
    """

    stages: Sequence[Stage]
    devices: Sequence[Device]
    link: Link = Link()

    def __post_init__(self) -> None:
        """Raises PipelineError where stages and devices do not go together."""
        if not self.devices or not self.stages or len(self.stages) % len(self.devices):
            raise PipelineError(
                f"{len(self.stages)} stages on {len(self.devices)} devices: each device needs equally many, at least 1"
            )

    def device_of(self, stage: int) -> int:
        """Number of the device on which a stage runs."""
        return stage % len(self.devices)

    @property
    def chunks(self) -> int:
        """Stages per device."""
        return len(self.stages) // len(self.devices)
