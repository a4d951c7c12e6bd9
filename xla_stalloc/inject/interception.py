"""Around JAX's compile step: asks for a plan, keeps the smaller of planned and stock, leaves a record.

`install` replaces ``jax._src.compiler.compile_or_get_cached``, the one function through which every program of JAX
reaches XLA or the persistent compilation cache, in the thread of the caller. It is private to JAX, so its signature is
checked first; if it ever changes, JAX stays as it is and `install` says why.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from xla_stalloc.inject import hook, ledger, marker, settings
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.record import PlanRecord

CLEARLY_SMALLER = 0.98
"""The stock figure of a plan is emulated, exact on most programs and within 2 % on the others: above this part of it, a
stock compile decides."""

FEWEST_OPERATIONS = 8
"""A StableHLO module below this size leaves nothing to reorder; most of these are single eager operations."""

_PARAMETERS = [
    "backend",
    "computation",
    "devices",
    "compile_options",
    "host_callbacks",
    "executable_devices",
    "pgle_profiler",
]

CompileStep = Callable[..., Any]

_lock = threading.Lock()
_state: str | None = None


def install() -> str:
    """Puts planning around JAX's compile step, once per process; returns ``""``, or why that is impossible."""
    global _state
    with _lock:
        if _state is None:
            _state = _install()
        return _state


def _install() -> str:
    try:
        from jax._src import compiler
        from jax._src.interpreters import pxla

        step = compiler.compile_or_get_cached
        found = list(inspect.signature(step).parameters)
        reached = pxla.compiler is compiler and not hasattr(pxla, "compile_or_get_cached")  # type: ignore[attr-defined]
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        return f"this version of JAX has no compile step that is known here ({error})"
    if found != _PARAMETERS or not reached:
        return f"this version of JAX has another compile step than is known here ({', '.join(found)})"
    compiler.compile_or_get_cached = planned_step(step)
    return ""


def planned_step(step: CompileStep) -> CompileStep:
    """Wraps a compile step, a function of the same arguments that returns an executable of ``jaxlib``."""

    @functools.wraps(step)
    def compile_or_get_cached(backend: Any, computation: Any, *args: Any, **kwargs: Any) -> Any:
        options = settings.wanted()
        if options is None:
            executable = step(backend, computation, *args, **kwargs)
            ledger.forget(executable)
            return executable

        def compile_(module: Any) -> Any:
            return step(backend, module, *args, **kwargs)

        started = time.perf_counter()
        executable, record = _compile(compile_, backend, computation, options)
        if options.mode == "full" and record.levers and "spatial" not in record.levers:
            record = record.because("spatial: not in this version")
        record = record.replace(mode=options.mode, compile_seconds=time.perf_counter() - started)
        process_wide = settings.process_wide()
        ledger.add(executable, record, process_wide.plan_dir if process_wide else None)
        return executable

    return compile_or_get_cached


def _compile(
    compile_: Callable[[Any], Any], backend: Any, computation: Any, options: PlanOptions
) -> tuple[Any, PlanRecord]:
    """Compiles one program as the options ask; returns the executable that is to run, and its record."""
    if _smaller_than(computation, FEWEST_OPERATIONS):
        return _stock(compile_, computation, f"fewer than {FEWEST_OPERATIONS} operations, nothing to reorder")
    if options.mode == "report":
        executable = compile_(computation)
        return executable, _reported(executable, options)
    if missing := hook.register(backend):
        return _stock(compile_, computation, missing)

    refused = ""
    with hook.under_way(hook.Compile(_name(computation), options)) as state:
        try:
            executable = compile_(marker.marked(computation, options))
        except Exception as error:
            if not state.perhaps_injected:
                raise
            refused = f"XLA refused the planned order: {_first_line(error)}"
    if refused:
        # If it was the user's program that is wrong, this raises again, and then it is stock XLA's own error.
        record = state.planned.record if state.planned else None
        return _stock(compile_, computation, refused, record, compiles=2)

    planned, record = _recover(executable, options, state)
    if not planned:
        return executable, _as_stock(record, executable)
    return _smaller(executable, record, lambda: compile_(computation))


def _recover(executable: Any, options: PlanOptions, state: hook.Compile) -> tuple[bool, PlanRecord]:
    """Whether the executable has an order of ours, and the record of its planning."""
    if state.planned is not None:
        return state.planned.serialized is not None, state.planned.record
    # The hook did not run: the executable came from the persistent cache, and its record with it.
    serialized = hook.hlo_of(executable)
    if (record := marker.record_of(serialized)) is not None:
        return True, record
    return False, hook.plan(serialized, options).record


def _smaller(executable: Any, record: PlanRecord, compile_stock: Callable[[], Any]) -> tuple[Any, PlanRecord]:
    """The planned executable, or the stock one if that turns out to need no more."""
    measured = temp_bytes(executable)
    if measured is not None and measured <= CLEARLY_SMALLER * record.stock_temp_bytes:
        return executable, record.replace(temp_bytes=measured)
    stock = compile_stock()
    stock_bytes = temp_bytes(stock)
    if measured is None or stock_bytes is None:
        return stock, _as_stock(record, stock).because("this runtime does not report the size of a planned program")
    record = record.replace(temp_bytes=measured, stock_temp_bytes=stock_bytes, stock_exact=True, compiles=2)
    if measured < stock_bytes:
        return executable, record
    reason = f"the planned order ended at {measured} temp bytes, XLA's own at {stock_bytes}"
    return stock, record.replace(temp_bytes=stock_bytes, levers=()).because(reason)


def _stock(
    compile_: Callable[[Any], Any], computation: Any, reason: str, record: PlanRecord | None = None, compiles: int = 1
) -> tuple[Any, PlanRecord]:
    """XLA's own result, with the reason why it is not planned."""
    executable = compile_(computation)
    record = (record or PlanRecord(module=_name(computation))).because(reason)
    return executable, _as_stock(record, executable).replace(compiles=compiles)


def _as_stock(record: PlanRecord, executable: Any) -> PlanRecord:
    """The record of an executable that is XLA's own: no lever applied, its size measured."""
    measured = temp_bytes(executable)
    if measured is None:
        return record.replace(temp_bytes=record.stock_temp_bytes, levers=(), stock_exact=False)
    record = record.replace(stock_temp_bytes=measured, temp_bytes=measured, levers=(), stock_exact=True)
    return record if record.reason else record.because("no smaller order was found")


def _reported(executable: Any, options: PlanOptions) -> PlanRecord:
    """Plans what stock XLA compiled, without injecting anything; ``temp_bytes`` is what the plan would reach."""
    planned = hook.plan(hook.hlo_of(executable), options).record
    stock = _as_stock(planned, executable)
    # Without a plan the planner's figure is missing; and where the emulation is off, no plan is above what runs.
    reachable = min(planned.temp_bytes or stock.temp_bytes, stock.temp_bytes)
    return stock.replace(temp_bytes=reachable, reason=planned.reason).because("mode report injects nothing")


def temp_bytes(executable: Any) -> int | None:
    """Temporary bytes that an executable allocates per device, as XLA reports them; None where it does not."""
    try:
        return int(executable.get_compiled_memory_stats().temp_size_in_bytes)
    except Exception:
        # Some runtimes implement no memory statistics; that must not fail a compile.
        return None


def _name(computation: Any) -> str:
    from jax.extend.mlir import ir

    return str(ir.StringAttr(computation.operation.attributes["sym_name"]).value)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _smaller_than(computation: Any, limit: int) -> bool:
    """Whether a StableHLO module has fewer operations than the limit; looks at no more than that many."""
    operations = [computation.operation]
    seen = 0
    while operations:
        for region in operations.pop().regions:
            for block in region.blocks:
                for operation in block.operations:
                    seen += 1
                    if seen >= limit:
                        return False
                    operations.append(operation.operation)
    return True
