"""A stage's figures from its compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from xla_stalloc import hlo
from xla_stalloc.hlo import Module, Shape
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import of
from xla_stalloc.report.figures import from_emulation
from xla_stalloc.scheduling.cost import Card, Costs
from xla_stalloc.sharding.stage import Phase, PipelineError, Program, Stage
from xla_stalloc.sharding.stage_functions import StageFunctions


def compile_stage(functions: StageFunctions, parameters: Any, inputs: Any) -> dict[Phase, Any]:
    """Compiles the programs of a stage; arrays, or their shapes with shardings, say for which devices."""
    forward = jax.jit(functions.forward).lower(parameters, inputs).compile()
    output, residuals = _outputs(forward)
    first = jax.jit(functions.input_gradient).lower(parameters, residuals, output).compile()
    _, deferred = _outputs(first)
    kept = functions.kept(residuals, output)
    return {
        Phase.FORWARD: forward,
        Phase.BACKWARD: jax.jit(functions.backward).lower(parameters, residuals, output).compile(),
        Phase.INPUT_GRADIENT: first,
        Phase.WEIGHT_GRADIENT: jax.jit(functions.weight_gradient).lower(parameters, kept, deferred).compile(),
    }


def _outputs(compiled: Any) -> Any:
    """The shapes of what a program returns, where it leaves them."""
    return jax.tree.map(
        lambda info, sharding: jax.ShapeDtypeStruct(info.shape, info.dtype, sharding=sharding),
        compiled.out_info,
        compiled.output_shardings,
    )


def stage_of_programs(
    name: str,
    programs: Mapping[Phase, Any],
    seconds: Callable[[Module], float],
    *,
    input_bytes: int,
    output_bytes: int,
    state_bytes: int,
    kept_bytes: int = 0,
) -> Stage:
    """A stage from what XLA compiled.

    What a forward returns beside its output is kept for the backward. The gradients that a backward returns are
    accumulated: they count once for the stage, and as temps of every run that returns them in memory of their own.

    Args:
      name: of the stage.
      programs: by phase, anything that `hlo.open` takes; halves of the backward and the optimizer may be absent.
      seconds: that a module runs, such as `roofline_seconds(card)`.
      input_bytes: of the gradient that goes to the stage before: as many as its input has; 0 for the first stage.
      output_bytes: of what goes to the next stage.
      state_bytes: of parameters and optimizer state.
      kept_bytes: of residuals and the incoming gradient that the weight gradient still needs; see `Stage`.

    Raises:
      HloError: a source is no compiled program.
      UnsupportedModuleError: a program has a form whose memory is not modelled.
      PipelineError: a program returns less than the stage sends on.
    """
    modules = {phase: hlo.open(source) for phase, source in programs.items()}

    def rest(phase: Phase, sent: int) -> int:
        """Bytes that a program returns beside what it sends on."""
        found = _array_bytes(modules[phase].entry.root.shape) - sent
        if found < 0:
            raise PipelineError(
                f"{name}: its {phase.name.lower().replace('_', ' ')} returns {found + sent} bytes, but sends on {sent}"
            )
        return found

    def program(phase: Phase, returned: int = 0) -> Program | None:
        if phase not in modules:
            return None
        return Program(seconds(modules[phase]), _temp_bytes(modules[phase]) + returned)

    def accumulated(phase: Phase, gradients: int) -> Program | None:
        aliased = _aliased_bytes(modules[phase]) if phase in modules else 0
        return program(phase, max(gradients - aliased, 0))

    for phase in (Phase.FORWARD, Phase.BACKWARD):
        if phase not in modules:
            raise PipelineError(f"{name}: its {phase.name.lower()} is missing")
    forward = program(Phase.FORWARD)
    gradients = rest(Phase.BACKWARD, input_bytes)
    backward = accumulated(Phase.BACKWARD, gradients)
    assert forward is not None and backward is not None
    return Stage(
        name=name,
        forward=forward,
        backward=backward,
        input_gradient=program(Phase.INPUT_GRADIENT),
        weight_gradient=accumulated(Phase.WEIGHT_GRADIENT, gradients),
        optimizer=program(Phase.OPTIMIZER),
        state_bytes=state_bytes,
        gradient_bytes=gradients,
        activation_bytes=rest(Phase.FORWARD, output_bytes),
        kept_bytes=kept_bytes,
        deferred_bytes=rest(Phase.INPUT_GRADIENT, input_bytes) if Phase.INPUT_GRADIENT in modules else 0,
        output_bytes=output_bytes,
    )


def roofline_seconds(card: Card) -> Callable[[Module], float]:
    """How long modules run on a card, one instruction after the other, by the cost model; a loop counts as one pass."""
    costs = Costs(card)

    def seconds(module: Module) -> float:
        return sum(costs.kernel(i) + costs.collective(i) for i in module.entry.instructions) / 1e9

    return seconds


def _temp_bytes(module: Module) -> int:
    """Temps, and the tables of pointers to the outputs, which are only there while the program runs."""
    lifetimes = of(without_barriers(module))
    found = from_emulation(lifetimes, lifetimes.assignment())
    assert found.temp is not None  # an emulation always has it
    return found.temp + found.output - _array_bytes(module.entry.root.shape)


def _array_bytes(shape: Shape) -> int:
    return sum(part.byte_size for _, part in shape.subshapes() if not part.is_tuple)


def _aliased_bytes(module: Module) -> int:
    return sum(module.entry.root.shape.at(output).byte_size for output, *_ in module.input_output_alias)
