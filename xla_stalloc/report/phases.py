"""Which part of a training step an instruction belongs to.

JAX writes what it does to a function into the path of each operation: ``jvp(...)`` around what is differentiated,
``transpose(...)`` around its backward pass, ``rematted_computation`` around what `jax.checkpoint` computes again. What
has no such mark is placed by what it feeds and what it depends on.
"""

from __future__ import annotations

from enum import StrEnum

from xla_stalloc.hlo import Computation, Instruction
from xla_stalloc.lifetimes import Lifetimes


class Phase(StrEnum):
    """A part of a training step; a program that computes no gradient is all FORWARD."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "optimizer update"


def marked(op_name: str) -> Phase | None:
    """What the path of an operation says by itself; None if nothing."""
    if "transpose(" in op_name or "rematted_computation" in op_name:
        return Phase.BACKWARD
    return Phase.FORWARD if "jvp(" in op_name else None


def phases(lifetimes: Lifetimes) -> dict[int, Phase]:
    """Instruction id -> its phase, for all computations that run in sequence.

    What carries no mark belongs to what it feeds: to the forward pass if that reads it, else to the backward pass. If
    it feeds neither, it is the optimizer's update, provided that the program computes a gradient at all.
    """
    computations = list(lifetimes.dataflow.computations)  # callees first
    found: dict[int, Phase | None] = {}
    for computation in computations:
        _place(computation, found)
    has_gradient = Phase.BACKWARD in found.values()
    otherwise = Phase.UPDATE if has_gradient else Phase.FORWARD
    placed: dict[int, Phase] = {}
    for computation in reversed(computations):
        caller = lifetimes.dataflow.callers.get(computation.id)
        of_caller = placed[caller.id] if caller is not None else otherwise
        for instruction in computation.instructions:
            placed[instruction.id] = found[instruction.id] or of_caller
    return placed


def _place(computation: Computation, found: dict[int, Phase | None]) -> None:
    """Phases inside one computation; None is what feeds nothing that is marked."""
    for instruction in reversed(computation.instructions):  # users first
        own = _own(instruction, found)
        if own is None:
            fed = {found[user.id] for user in instruction.users}
            own = Phase.FORWARD if Phase.FORWARD in fed else Phase.BACKWARD if Phase.BACKWARD in fed else None
        found[instruction.id] = own


def _own(instruction: Instruction, found: dict[int, Phase | None]) -> Phase | None:
    told = marked(instruction.op_name)
    if told is not None or instruction.opcode not in ("while", "call", "conditional"):
        return told
    # A loop over micro-batches has both passes inside: what it gives are gradients.
    inside = {found.get(i.id) for called in instruction.called for i in called.instructions}
    return Phase.BACKWARD if Phase.BACKWARD in inside else Phase.FORWARD if Phase.FORWARD in inside else None
