"""What goes into the planner beside a module, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

from xla_stalloc.plan.record import PlanRecord

MODES = ("off", "report", "schedule", "full")
"""What may be asked for: nothing; plan and record only; the order of instructions; every lever there is."""

DEFAULT_BUDGET_SECONDS = 0.5
"""Planning time per program: small beside XLA's own compile time of any program worth planning."""

DEFAULT_CARD = "h100"

PLANNER_VERSION = 4
"""Raise it when the same module may get a different plan: older entries of the persistent cache then stay unused."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How to plan one module.

    Attributes:
        mode: One of `MODES`, but not ``off``.
        budget_seconds: Bound on planning time. The plan must depend on this number, never on a clock, so that every
            process of a job finds the same one.
        pin_collectives: Whether collectives keep the order in which XLA put them. They must where other processes take
            part that may run stock XLA's order. Devices of one process, and processes that have agreed on a plan, all
            run one order: there only data binds collectives, and keeping stock's order may cost a lot of memory.
        spatial: Whether our packer places the temporaries of what comes out. Orders are then judged by the most bytes
            that live at once, which it reaches or nearly so, rather than by XLA's packing.
        memory_budget_bytes: Temporary bytes that an order may need if it hides more communication behind computation
            for it; 0: as few as hide what stock's order hides. Only platforms whose transfers run beside computation
            have that choice.
        group: Names the processes that are to run one plan, where there are several (`inject.agreement`); or "".
        card: The GPU whose times orders for GPUs are compared by, one of `scheduling.cost.CARDS`.
    """

    mode: str = "schedule"
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    pin_collectives: bool = True
    spatial: bool = False
    card: str = DEFAULT_CARD
    group: str = ""
    memory_budget_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PlannedModule:
    """What the planner decided.

    Attributes:
        serialized: The ``HloModuleProto`` with the planned order, or None: leave XLA's own module untouched.
        record: The figures, those of stock and of the plan both from the emulation.
    """

    serialized: bytes | None
    record: PlanRecord
