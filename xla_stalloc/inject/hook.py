"""The way into the compiler: XLA's post-scheduler hook, through the public ``jax.extend.xla``.

XLA calls the hook for every module that any thread compiles, just before it assigns buffers. The hook plans the marked
ones and touches no other. It may run on the thread that compiles (jaxlib 0.11 and later) or on one of XLA's own
(0.10), so what it decided travels back over a list of the compiles under way rather than over thread-local state.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.inject import agreement, limits, marker
from xla_stalloc.inject.errors import in_short
from xla_stalloc.plan.options import PlannedModule, PlanOptions
from xla_stalloc.plan.record import PlanRecord

Planner = Callable[[bytes, PlanOptions], PlannedModule]

NAME = "xla_stalloc"

_logger = logging.getLogger(__name__)
_lock = threading.Lock()
_registered: dict[str, str] = {}
_under_way: list[Compile] = []


class Compile:
    """One compile under way: who does it, and what the hook decided about it.

    Attributes:
        module: Name of the module.
        options: How it is to be planned.
        thread: Identity of the thread that compiles.
        planned: What the hook decided; None as long as it did not run, which is how a cached executable is known.
        perhaps_injected: Whether XLA may have been given an order of ours.
    """

    def __init__(self, module: str, options: PlanOptions) -> None:
        """Starts with nothing decided."""
        self.module = module
        self.options = options
        self.thread = threading.get_ident()
        self.planned: PlannedModule | None = None
        self.perhaps_injected = False


@contextmanager
def under_way(compile_: Compile) -> Iterator[Compile]:
    """The hook finds this compile for as long as the context lasts."""
    with _lock:
        _under_way.append(compile_)
    try:
        yield compile_
    finally:
        with _lock:
            _under_way.remove(compile_)


def plan(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """Plans a serialized, scheduled ``HloModuleProto``; what XLA gets back has the record inside.

    Whatever goes wrong becomes a reason in the record, never an exception.
    """
    started = time.perf_counter()
    try:
        if options.group:
            planned = agreement.group_named(options.group).plan(serialized, options, planner())
        else:
            planned = planner()(serialized, options)
        if planned.serialized is None:
            return planned
        if lost := limits.lost(serialized):
            return PlannedModule(None, planned.record.because(lost))
        return PlannedModule(marker.with_record(planned.serialized, planned.record), planned.record)
    except Exception as error:
        # Not BaseException: an interrupt by the user must stop the compile that it was meant for.
        _logger.info("planning failed", exc_info=True)
        record = PlanRecord(
            module=hlo_pb2.HloModuleProto.FromString(serialized).name,
            mode=options.mode,
            reason=f"planning failed, XLA's own order is used: {in_short(error)}",
            plan_seconds=time.perf_counter() - started,
        )
        return PlannedModule(None, record)


def planner() -> Planner:
    """The planner in use; imported at the first compile, so that importing the project stays cheap."""
    if _replacement is not None:
        return _replacement
    from xla_stalloc.plan.planner import plan_module

    default: Planner = plan_module
    return default


_replacement: Planner | None = None


@contextmanager
def using(replacement: Planner) -> Iterator[None]:
    """Another planner, process-wide, for as long as the context lasts: for tests and experiments."""
    global _replacement
    before, _replacement = _replacement, replacement
    try:
        yield
    finally:
        _replacement = before


def register(backend: Any) -> str:
    """Registers the hook for the platform of a backend, once; returns ``""``, or why there is no hook."""
    platform = _platform(backend)
    with _lock:
        if platform not in _registered:
            _registered[platform] = _register(platform)
        return _registered[platform]


def _platform(backend: Any) -> str:
    """The name under which JAX knows the plugin of a backend: ``cuda``, say, where the backend itself says ``gpu``."""
    from jax.extend.backend import backends

    # JAX 0.10 compares with the backend's own word instead.
    if jax.version.__version_info__ >= (0, 11):
        for name, client in backends().items():
            if client is backend:
                return str(name)
        if backend.platform == "gpu":  # a client that only compiles, for devices that are not here
            return "rocm" if "rocm" in str(backend.platform_version).lower() else "cuda"
    return str(backend.platform)


def _register(platform: str) -> str:
    try:
        from jax.extend import xla

        planner()  # imported here, in the thread of the caller, rather than on a thread of XLA's that may not wait
        xla.register_hlo_module_transformation(
            _on_module, name=NAME, stage=xla.PipelineStage.POST_SCHEDULER, platforms=platform
        )
    except Exception as error:
        return f"no planning on platform {platform!r}: {in_short(error)}"
    return ""


def _on_module(serialized: bytes) -> bytes | None:
    """What XLA calls. Must not raise: that would fail a compile of the user's."""
    try:
        request = marker.request_of(serialized)
        if request is None:
            return None
        module, options = request
        planned = plan(serialized, options)
        _report(module, options, planned)
        return planned.serialized
    except Exception:
        return None


def _report(module: str, options: PlanOptions, planned: PlannedModule) -> None:
    """Hands the decision to the compile it belongs to.

    On a thread of XLA's own two compiles of the same name cannot be told apart. Neither gets the decision then: it is
    found again from the executable.
    """
    with _lock:
        candidates = [c for c in _under_way if (c.module, c.options) == (module, options)]
        mine = [c for c in candidates if c.thread == threading.get_ident()]
        candidates = mine[-1:] or candidates
        for candidate in candidates:
            candidate.perhaps_injected |= planned.serialized is not None
            candidate.planned = planned if len(candidates) == 1 else None


def hlo_of(executable: Any) -> bytes:
    """The scheduled ``HloModuleProto`` inside a ``jaxlib`` executable, serialized."""
    serialized: bytes = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    return serialized
