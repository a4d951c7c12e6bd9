"""The process-wide switch: from now on every program that JAX compiles here is planned."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path

from xla_stalloc.inject import settings
from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS

_lock = threading.Lock()


def enable(
    mode: str = "full",
    budget_seconds: float = DEFAULT_BUDGET_SECONDS,
    plan_dir: str | os.PathLike[str] | None = None,
    memory_budget_bytes: int = 0,
) -> None:
    """Plans every program that is compiled after this, whether by ``jax.jit(f)(x)`` or ``.lower(x).compile()``.

    JAX's in-process caches are cleared when this changes anything, so that functions which were compiled before are
    compiled again at their next call. Enabling what is enabled already does nothing.

    Args:
        mode: ``off``, ``report`` (plan and record, inject nothing), ``schedule`` (order of instructions) or ``full``.
        budget_seconds: Bound on planning time per program.
        plan_dir: Folder that gets every record as ``<module>-<fingerprint>.json``; created when needed.
        memory_budget_bytes: Temporary bytes per device that a program may need if it hides more communication for it,
            on GPUs; 0: as few as hide what stock XLA hides.

    Raises:
        ValueError: The mode or the budget makes no sense.
    """
    folder = None if plan_dir is None else Path(plan_dir)
    wanted = settings.Settings(mode, float(budget_seconds), folder, memory_budget_bytes)
    if wanted.mode != "off":
        warn_if_unavailable()
    _switch(wanted)


def disable() -> None:
    """Ends what `enable` began: programs compiled after this are stock again, those of `stalloc.jit` excepted."""
    _switch(None)


def warn_if_unavailable() -> None:
    """Gets ready to plan; warns if this JAX cannot be planned for, and then every program stays stock."""
    from xla_stalloc.inject import interception

    if reason := interception.install():
        warnings.warn(f"xla_stalloc plans nothing: {reason}", RuntimeWarning, stacklevel=3)


def _switch(wanted: settings.Settings | None) -> None:
    import jax

    with _lock:
        before = settings.process_wide()
        settings.set_process_wide(wanted)
        # The folder of the records alone is no reason to compile everything again.
        if _compiles_as(before) != _compiles_as(wanted):
            jax.clear_caches()


def _compiles_as(wanted: settings.Settings | None) -> tuple[str, float, int] | None:
    return None if wanted is None else (wanted.mode, wanted.budget_seconds, wanted.memory_budget_bytes)
