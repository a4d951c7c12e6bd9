"""Absl flags for training scripts: import this module, and ``--xla_stalloc=full`` plans every program.

    from absl import app
    import xla_stalloc.flags  # defines the flags; app.run applies them

A script that parses flags without ``app.run`` calls `apply` after it has parsed them.
"""

from __future__ import annotations

from absl import app, flags

from xla_stalloc.inject import settings
from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS, MODES


def _environment() -> settings.Settings:
    # A wrong value is reported where the environment itself is applied, once.
    try:
        return settings.Settings.from_environment() or settings.Settings("off")
    except ValueError:
        return settings.Settings("off")


_FROM_ENVIRONMENT = _environment()

MODE = flags.DEFINE_enum(
    "xla_stalloc",
    _FROM_ENVIRONMENT.mode,
    list(MODES),
    "Memory planning of every compiled program: none; plan and record only; the order of instructions; all levers.",
)
BUDGET_SECONDS = flags.DEFINE_float(
    "xla_stalloc_budget_seconds",
    _FROM_ENVIRONMENT.budget_seconds if _FROM_ENVIRONMENT.mode != "off" else DEFAULT_BUDGET_SECONDS,
    "Bound on the planning time of one program, in seconds.",
    lower_bound=1e-3,
)
PLAN_DIR = flags.DEFINE_string(
    "xla_stalloc_plan_dir",
    str(_FROM_ENVIRONMENT.plan_dir) if _FROM_ENVIRONMENT.plan_dir else None,
    "Folder that gets the record of every planned program as a JSON file.",
)
MEMORY_BUDGET_BYTES = flags.DEFINE_integer(
    "xla_stalloc_memory_budget_bytes",
    _FROM_ENVIRONMENT.memory_budget_bytes,
    "Temporary bytes per device that a program may need if it hides more communication for it; 0: as few as possible.",
    lower_bound=0,
)


def apply() -> None:
    """Enables what the parsed flags ask for; a flag that was not given leaves everything as it is.

    Raises:
        absl.flags.UnparsedFlagAccessError: The flags were not parsed yet.
    """
    if MODE.value == "off" and not MODE.present:
        return
    from xla_stalloc.inject import switch

    switch.enable(MODE.value, BUDGET_SECONDS.value, PLAN_DIR.value, MEMORY_BUDGET_BYTES.value)


app.call_after_init(apply)
