"""Offline spatio-temporal memory planning for JAX and XLA.

Example::

    import xla_stalloc as stalloc

    step = stalloc.jit(train_step, donate_argnums=0)  # drop-in for jax.jit
    stalloc.enable()  # or: every program of the process
    stalloc.records()  # what was planned, and what it brought
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xla_stalloc import plan  # the package, which can be called; importing any part of it would put it here anyway

if TYPE_CHECKING:
    from xla_stalloc.inject.jit import jit
    from xla_stalloc.inject.ledger import records
    from xla_stalloc.inject.switch import disable, enable
    from xla_stalloc.plan.memory_plan import MemoryPlan
    from xla_stalloc.plan.record import PlanRecord
    from xla_stalloc.report.analyze import analyze
    from xla_stalloc.report.model import MemoryReport
    from xla_stalloc.report.snapshot import snapshot
    from xla_stalloc.report.step_peaks import step_peaks

__all__ = [
    "MemoryPlan",
    "MemoryReport",
    "PlanRecord",
    "analyze",
    "disable",
    "enable",
    "jit",
    "plan",
    "records",
    "snapshot",
    "step_peaks",
]

_HOMES = {
    "MemoryPlan": "xla_stalloc.plan.memory_plan",
    "MemoryReport": "xla_stalloc.report.model",
    "PlanRecord": "xla_stalloc.plan.record",
    "analyze": "xla_stalloc.report.analyze",
    "disable": "xla_stalloc.inject.switch",
    "enable": "xla_stalloc.inject.switch",
    "jit": "xla_stalloc.inject.jit",
    "records": "xla_stalloc.inject.ledger",
    "snapshot": "xla_stalloc.report.snapshot",
    "step_peaks": "xla_stalloc.report.step_peaks",
}


def __getattr__(name: str) -> Any:
    """Imports the public names at their first use (PEP 562): every JAX process imports this package, few use it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
