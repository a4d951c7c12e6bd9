"""Around JAX's compile step: programs that ask for it are planned, and leave a record.

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

from xla_stalloc.inject import choice, ledger, settings
from xla_stalloc.inject.client import Client
from xla_stalloc.inject.errors import in_short
from xla_stalloc.inject.program import Program

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
    def compile_or_get_cached(
        backend: Any,
        computation: Any,
        devices: Any,
        compile_options: Any,
        host_callbacks: Any,
        executable_devices: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        def step_of(client: Any, module: Any) -> Any:
            return step(client, module, devices, compile_options, host_callbacks, executable_devices, *args, **kwargs)

        options = settings.wanted()
        if options is None:
            executable = step_of(backend, computation)
            ledger.forget(executable)
            return executable

        errors: list[Exception] = []
        client = Client(backend)

        def compile_(module: Any, xla_options: dict[str, str]) -> Any:
            before = compile_options.env_option_overrides
            compile_options.env_option_overrides = [*before, *xla_options.items()]
            try:
                return step_of(client if backend.platform == "cpu" else backend, module)
            except Exception as error:
                errors.append(error)
                raise
            finally:
                compile_options.env_option_overrides = before

        def load(serialized: bytes) -> Any:
            # As JAX loads what is in its persistent cache.
            return backend.deserialize_executable(serialized, executable_devices, compile_options)

        started = time.perf_counter()
        program = Program(
            backend,
            computation,
            compile_,
            client.serialize,
            load,
            xla_options=dict(compile_options.env_option_overrides),
            devices=tuple(device.id for device in devices.flat),
            processes=tuple(sorted({device.process_index for device in devices.flat})),
            device_kind=devices.flat[0].device_kind,
            has_callbacks=bool(host_callbacks),
        )
        try:
            executable, record = choice.best(program, options)
        except Exception as error:
            if error in errors:
                raise  # XLA's word on the user's program
            executable, record = choice.stock(program, f"planning failed: {in_short(error)}")
        record = record.replace(mode=options.mode, compile_seconds=time.perf_counter() - started)
        process_wide = settings.process_wide()
        ledger.add(executable, record, process_wide.plan_dir if process_wide else None)
        return executable

    return compile_or_get_cached
