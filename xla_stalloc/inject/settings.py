"""What is asked for: the process-wide settings, and the one request that a single `stalloc.jit` makes.

No JAX here: this is imported whenever JAX looks for plugins, whether or not anybody wants planning.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS, MODES, PlanOptions

ENV_MODE = "XLA_STALLOC"
ENV_BUDGET_SECONDS = "XLA_STALLOC_BUDGET_SECONDS"
ENV_PLAN_DIR = "XLA_STALLOC_PLAN_DIR"
ENV_MEMORY_BUDGET_BYTES = "XLA_STALLOC_MEMORY_BUDGET_BYTES"


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The process-wide settings.

    Attributes:
        mode: One of ``off``, ``report``, ``schedule``, ``full``.
        budget_seconds: Planning time per program.
        plan_dir: Folder that gets every record as a JSON file, or None.
        memory_budget_bytes: See `PlanOptions`.

    Raises:
        ValueError: A value that makes no sense, named together with those that would.
    """

    mode: str = "full"
    budget_seconds: float = DEFAULT_BUDGET_SECONDS
    plan_dir: Path | None = None
    memory_budget_bytes: int = 0

    def __post_init__(self) -> None:
        """Checks the values."""
        check_mode(self.mode)
        check_budget(self.budget_seconds)
        check_memory_budget(self.memory_budget_bytes)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings | None:
        """Returns what ``XLA_STALLOC`` and ``XLA_STALLOC_..`` ask for; None if the first is unset.

        Raises:
            ValueError: Names the variable and its value.
        """
        environment = os.environ if environment is None else environment
        if not (mode := environment.get(ENV_MODE, "").strip().lower()):
            return None
        if mode not in MODES:
            raise ValueError(f"{ENV_MODE}={mode} is not a mode; use one of {', '.join(MODES)}")
        budget = environment.get(ENV_BUDGET_SECONDS, "").strip() or str(DEFAULT_BUDGET_SECONDS)
        try:
            budget_seconds = check_budget(float(budget))
        except ValueError as error:
            raise ValueError(f"{ENV_BUDGET_SECONDS}={budget} is not a positive number of seconds") from error
        memory_budget = environment.get(ENV_MEMORY_BUDGET_BYTES, "").strip() or "0"
        try:
            memory_budget_bytes = check_memory_budget(int(memory_budget))
        except ValueError as error:
            raise ValueError(f"{ENV_MEMORY_BUDGET_BYTES}={memory_budget} is not a number of bytes") from error
        plan_dir = environment.get(ENV_PLAN_DIR, "").strip()
        return cls(mode, budget_seconds, Path(plan_dir) if plan_dir else None, memory_budget_bytes)


def check_mode(mode: str) -> str:
    """Returns the mode, or raises ValueError."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    return mode


def check_budget(seconds: float) -> float:
    """Returns the budget, or raises ValueError."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"budget_seconds must be a positive number of seconds, not {seconds!r}")
    return seconds


def check_memory_budget(count: int) -> int:
    """Returns the budget of bytes, or raises ValueError."""
    if count < 0:
        raise ValueError(f"memory_budget_bytes must be a number of bytes, or 0 for as few as possible, not {count!r}")
    return count


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What one `stalloc.jit` asks for; None leaves a value to the process-wide settings."""

    mode: str | None = None
    budget_seconds: float | None = None
    memory_budget_bytes: int | None = None

    def options(self) -> PlanOptions:
        """Fills the gaps: from the process-wide settings where there are any, else mode ``full``."""
        fallback = process_wide() or Settings()
        return PlanOptions(
            fallback.mode if self.mode is None else self.mode,
            fallback.budget_seconds if self.budget_seconds is None else self.budget_seconds,
            memory_budget_bytes=(
                fallback.memory_budget_bytes if self.memory_budget_bytes is None else self.memory_budget_bytes
            ),
        )


_process_wide: Settings | None = None
_request: ContextVar[Request | None] = ContextVar("xla_stalloc_request", default=None)

set_request = _request.set
reset_request = _request.reset


def process_wide() -> Settings | None:
    """The process-wide settings, or None when nothing was enabled."""
    return _process_wide


def set_process_wide(settings: Settings | None) -> None:
    """Replaces the process-wide settings; see `switch` for the public way, which clears JAX's caches too."""
    global _process_wide
    _process_wide = settings


@contextmanager
def requesting(request: Request | None) -> Iterator[None]:
    """Compiles in this thread (and in no other) follow the request; None: they follow the process-wide settings."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def wanted() -> PlanOptions | None:
    """How to plan the program that this thread is about to compile, or None: not at all."""
    request = _request.get()
    if request is None:
        settings = _process_wide
        if settings is None or settings.mode == "off":
            return None
        return Request().options()
    options = request.options()
    return None if options.mode == "off" else options
