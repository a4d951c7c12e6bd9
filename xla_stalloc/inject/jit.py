"""`stalloc.jit`: ``jax.jit`` whose programs are planned."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar, overload

import jax
from jax.extend import source_info_util

from xla_stalloc.inject import interception, ledger, settings, switch
from xla_stalloc.inject.program import size_of
from xla_stalloc.plan.record import PlanRecord

# Errors and the sources of instructions point at the user's lines, not at the ones below.
source_info_util.register_exclusion(__file__)

_Function = Callable[..., Any]
_Stage = TypeVar("_Stage")


@overload
def jit(
    fun: _Function,
    /,
    *,
    mode: str | None = ...,
    budget_seconds: float | None = ...,
    memory_budget_bytes: int | None = ...,
    **options: Any,
) -> Jitted: ...


@overload
def jit(
    *,
    mode: str | None = ...,
    budget_seconds: float | None = ...,
    memory_budget_bytes: int | None = ...,
    **options: Any,
) -> Callable[[_Function], Jitted]: ...


def jit(
    fun: _Function | None = None,
    /,
    *,
    mode: str | None = None,
    budget_seconds: float | None = None,
    memory_budget_bytes: int | None = None,
    **options: Any,
) -> Jitted | Callable[[_Function], Jitted]:
    """Drop-in for ``jax.jit``: same arguments, same outputs bit for bit, less temporary memory.

    Called inside another ``jax.jit`` it becomes part of that program, which is planned or not as the outer one asks.

    Args:
        fun: The function; leave it out to use this as a decorator with arguments.
        mode: ``off``, ``report``, ``schedule`` or ``full``; None: what is enabled process-wide, else ``full``.
        budget_seconds: Bound on planning time per program; None: what is enabled process-wide, else 0.5.
        memory_budget_bytes: Temporary bytes per device that the program may need if it hides more communication for it,
            on GPUs; 0: as few as hide what stock XLA hides. None: what is enabled process-wide, else 0.
        **options: Every argument of ``jax.jit``: ``donate_argnums``, ``static_argnames``, ``in_shardings``, ...

    Returns:
        A callable with the methods of a jitted function. What its ``lower(...).compile()`` returns has one attribute
        more than JAX's: ``stalloc``, the `PlanRecord`.

    Raises:
        ValueError: The mode or the budget makes no sense.
    """
    request = settings.Request(
        None if mode is None else settings.check_mode(mode),
        None if budget_seconds is None else settings.check_budget(float(budget_seconds)),
        None if memory_budget_bytes is None else settings.check_memory_budget(memory_budget_bytes),
    )
    if fun is None:
        return lambda function: Jitted(function, request, options)
    return Jitted(fun, request, options)


class Jitted:
    """What `jit` returns: a jitted function whose compiles ask for a plan."""

    __wrapped__: _Function

    def __init__(self, fun: _Function, request: settings.Request, options: dict[str, Any]) -> None:
        """Jits ``fun`` with the given options of ``jax.jit``."""
        if request.mode != "off":
            switch.warn_if_unavailable()
        functools.update_wrapper(self, fun)
        self._request = request
        self._options = options
        self._jitted: Any = jax.jit(_Body(fun), **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function, compiled and planned at the first call with these shapes."""
        token = settings.set_request(self._request)
        try:
            return self._jitted(*args, **kwargs)
        finally:
            settings.reset_request(token)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Binds like a function, so that methods can be decorated."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickles like a jitted function: by what it was made from."""
        return Jitted, (self.__wrapped__, self._request, self._options)

    def __repr__(self) -> str:
        """Names the function."""
        return f"<stalloc.jit of {self.__wrapped__!r}>"

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Traces the function, as ``jax.jit(fun).trace`` does."""
        return _specialize(self._jitted.trace(*args, **kwargs), Traced, self._request)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the function, as ``jax.jit(fun).lower`` does."""
        return _specialize(self._jitted.lower(*args, **kwargs), Lowered, self._request)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and types of the outputs; nothing is compiled."""
        return self._jitted.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Drops what was compiled, so that the next call compiles and plans again."""
        self._jitted.clear_cache()

    def _cache_size(self) -> int:
        return int(self._jitted._cache_size())


class _Body(functools.partial[Any]):
    """The function under another identity.

    JAX caches traces and executables by the function: under its own identity a planned program would serve a plain
    ``jax.jit`` of it, and the other way round. JAX looks through a partial for names, signatures and source lines.
    """

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        # What the function itself compiles while it is traced (constants, say) is not the program that was asked for.
        with settings.requesting(None):
            return super().__call__(*args, **kwargs)


class Traced(jax.stages.Traced):
    """``jax.stages.Traced`` whose compiles ask for a plan."""

    __slots__ = ("_request",)
    _request: settings.Request

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the program, as JAX does."""
        return _specialize(super().lower(*args, **kwargs), Lowered, self._request)


class Lowered(jax.stages.Lowered):
    """``jax.stages.Lowered`` whose compiles ask for a plan."""

    __slots__ = ("_request",)
    _request: settings.Request

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compiles and plans the program."""
        with settings.requesting(self._request):
            return _specialize(super().compile(*args, **kwargs), Compiled, self._request)


class Compiled(jax.stages.Compiled):
    """``jax.stages.Compiled`` and the record of its planning."""

    __slots__ = ("_request",)
    _request: settings.Request

    @property
    def stalloc(self) -> PlanRecord:
        """What planning did to this program; with mode ``off``, that nothing was asked for."""
        executable: Any = self.runtime_executable()
        if (record := ledger.record_of(executable)) is not None:
            return record
        size = size_of(executable)
        return PlanRecord(
            module=executable.hlo_modules()[0].name,
            mode=self._request.mode or "full",
            stock_temp_bytes=size.temp if size else 0,
            temp_bytes=size.temp if size else 0,
            stock_exact=size is not None,
            reason=interception.install() or "compiled with mode off",
        )


def _specialize(stage: Any, kind: type[_Stage], request: settings.Request) -> _Stage:
    """Returns JAX's object of one compilation stage as our subclass of it.

    The state is copied rather than the constructor called: how JAX constructs its stages changes, that they are plain
    objects does not.
    """
    special = kind.__new__(kind)
    for base in type(stage).__mro__:
        for name in getattr(base, "__slots__", ()):
            if hasattr(stage, name):
                setattr(special, name, getattr(stage, name))
    for name, value in getattr(stage, "__dict__", {}).items():
        setattr(special, name, value)
    special._request = request  # type: ignore[attr-defined]
    return special
