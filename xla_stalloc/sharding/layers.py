"""Layers of a model as figures, and what becomes of them when they share a stage or a micro-batch is cut finer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xla_stalloc.sharding.stage import PipelineError, Program, Stage


@dataclass(frozen=True, slots=True)
class Layer:
    """What cannot be cut into stages any further; figures are of one micro-batch.

    Attributes:
      name: for people.
      forward_seconds: of its forward.
      input_gradient_seconds: of the part of its backward that the layer before waits for.
      weight_gradient_seconds: of the rest of its backward.
      optimizer_seconds: of its update, once per step.
      state_bytes: parameters and optimizer state.
      gradient_bytes: of its parameters.
      activation_bytes: what its forward keeps for its backward.
      kept_bytes: of those, and of the gradient that comes in, what the weight gradient still needs.
      deferred_bytes: what the input gradient computes for the weight gradient.
      output_bytes: what the next layer gets.
      temp_bytes: in use while any of its programs runs.
    """

    name: str
    forward_seconds: float
    input_gradient_seconds: float
    weight_gradient_seconds: float
    optimizer_seconds: float = 0.0
    state_bytes: int = 0
    gradient_bytes: int = 0
    activation_bytes: int = 0
    kept_bytes: int = 0
    deferred_bytes: int = 0
    output_bytes: int = 0
    temp_bytes: int = 0


def stage_of(layers: Sequence[Layer], finer: float = 1.0, overhead_seconds: float = 0.0) -> Stage:
    """One stage that runs these layers.

    Args:
      layers: consecutive ones, at least one.
      finer: how many times more micro-batches than the layers' figures are of; what belongs to a micro-batch shrinks
        alike.
      overhead_seconds: that each program takes besides, however small its micro-batch is.

    Raises:
      PipelineError: a figure is negative, or a program takes no time.
    """
    if not layers:
        raise PipelineError("a stage without layers: use fewer stages")

    def program(field: str, per: float = finer) -> Program:
        seconds = sum(getattr(layer, field) for layer in layers) / per + overhead_seconds
        return Program(seconds, _ceil(max(layer.temp_bytes for layer in layers), per))

    def bytes(field: str, per: float = 1.0) -> int:
        return sum(_ceil(getattr(layer, field), per) for layer in layers)

    first, second = program("input_gradient_seconds"), program("weight_gradient_seconds")
    whole = Program(first.seconds + second.seconds - overhead_seconds, first.temp_bytes)
    optimizer = program("optimizer_seconds", per=1.0)
    return Stage(
        name=layers[0].name if len(layers) == 1 else f"{layers[0].name}..{layers[-1].name}",
        forward=program("forward_seconds"),
        backward=whole,
        input_gradient=first if second.seconds > 0 else None,
        weight_gradient=second if second.seconds > 0 else None,
        optimizer=optimizer if optimizer.seconds > overhead_seconds else None,
        state_bytes=bytes("state_bytes"),
        gradient_bytes=bytes("gradient_bytes"),
        activation_bytes=bytes("activation_bytes", finer),
        kept_bytes=bytes("kept_bytes", finer),
        deferred_bytes=bytes("deferred_bytes", finer),
        output_bytes=_ceil(layers[-1].output_bytes, finer),
    )


def _ceil(bytes: int, per: float) -> int:
    return math.ceil(bytes / per) if per != 1 else bytes
