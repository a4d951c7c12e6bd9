"""What a buffer is for: by its band and, in the temp allocation, by who writes it and who reads it."""

from __future__ import annotations

from xla_stalloc.lifetimes import Value
from xla_stalloc.lifetimes.program import uses
from xla_stalloc.report.map.allocations import TEMPS
from xla_stalloc.report.scopes import BACKWARD, FORWARD, RECOMPUTED, phase_of

_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-", "ragged-all-to-all", "reduce-scatter")
_LATER = (BACKWARD, RECOMPUTED)


def kind_of(value: Value, band: str) -> str:
    """The kind of a value in a band.

    In the temp allocation: ``residual`` (written in the forward, read in the backward), ``forward``, ``recomputed``,
    ``backward``, ``collective``, ``copy``, or ``other``, the optimizer's update for instance. Elsewhere it is the band.
    """
    if band != TEMPS:
        return band
    opcode = value.instruction.opcode
    if opcode.startswith(_COLLECTIVES):
        return "collective"
    phase = phase_of(value.instruction.op_name)
    if phase == FORWARD and any(phase_of(user.op_name) in _LATER for user, _, _ in uses(value)):
        return "residual"
    if opcode.startswith("copy"):
        return "copy"
    return phase or "other"
