"""The peak of memory in every step of a loop, from the device where it tells, else from figures of its programs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

import jax

from xla_stalloc.plan.explain import size
from xla_stalloc.report.snapshot import live_bytes

_P = ParamSpec("_P")
_R = TypeVar("_R")
Source = Literal["device", "programs"]


@dataclass(frozen=True, slots=True)
class StepPeak:
    """The peak of one step.

    Attributes:
        step: number of the step, from 0.
        bytes_per_device: by device of this process.
        source: ``device``: `memory_stats()` of every device had its highest mark in this step, so this is measured.
            ``programs``: arrays that were alive when the step began, and what the largest of its programs needs on top,
            by the compiler's own figures; arrays that the step made before that program ran are not in it.
        program: the largest program, for ``programs``.
    """

    step: int
    bytes_per_device: dict[str, int]
    source: Source
    program: str = ""

    @property
    def bytes(self) -> int:
        """On the device that had most."""
        return max(self.bytes_per_device.values(), default=0)


class StepPeaks:
    """Records the peak of every step: each `with` is a step, or each call of a function that it decorates.

    Steps do not overlap: one recorder serves one loop.

    Attributes:
        records: of the steps that have ended, oldest first.
    """

    def __init__(self, programs: Sequence[Any] = ()) -> None:
        """Args: the compiled programs of a step (`jax.stages.Compiled`); without any, all that the process holds."""
        self.records: list[StepPeak] = []
        self._programs = tuple(programs)
        self._running = threading.Lock()
        self._marks: dict[str, int] = {}
        self._alive: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Begins a step.

        Raises:
            RuntimeError: a step of this recorder is under way.
        """
        if not self._running.acquire(blocking=False):
            raise RuntimeError("a step is under way already; give every loop a recorder of its own: step_peaks()")
        self._marks = _marks()
        self._alive = dict(live_bytes())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends a step: waits for its arrays, since JAX runs ahead, and records. A step that raised is not recorded."""
        try:
            if kind is None:
                self.records.append(self._record())
        finally:
            self._running.release()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """The function, every call of which is a step; its attribute `peaks` is this recorder."""

        @functools.wraps(function)
        def step(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return function(*args, **kwargs)

        step.peaks = self  # type: ignore[attr-defined]
        return step

    def _record(self) -> StepPeak:
        jax.block_until_ready([array for array in jax.live_arrays() if not array.is_deleted()])
        number, marks = len(self.records), _marks()
        if marks and all(mark > self._marks.get(device, mark) for device, mark in marks.items()):
            return StepPeak(number, marks, "device")
        after = live_bytes()
        peaks = {device: max(self._alive.get(device, 0), after[device]) for device in {*self._alive, *after}}
        largest, program = 0, ""
        for executable in self._executables():
            needed = _needed(executable)
            for device in map(str, executable.local_devices()):
                peaks[device] = max(peaks.get(device, 0), self._alive.get(device, 0) + needed)
            if needed > largest:
                largest, program = needed, executable.hlo_modules()[0].name
        return StepPeak(number, dict(sorted(peaks.items())), "programs", program)

    def _executables(self) -> list[Any]:
        if self._programs:
            return [program.runtime_executable() for program in self._programs]
        clients = {id(device.client): device.client for device in jax.local_devices()}
        return [executable for client in clients.values() for executable in client.live_executables()]

    def __str__(self) -> str:
        """One line for each step."""
        return "\n".join(
            f"step {record.step}: {size(record.bytes)} ({': '.join(filter(None, [record.source, record.program]))})"
            for record in self.records
        )


def step_peaks(programs: Sequence[Any] = ()) -> StepPeaks:
    """A recorder of the peak of every step, as a context manager or a decorator.

    Example::

        peaks = stalloc.step_peaks()
        for batch in batches:
            with peaks:
                state, loss = train_step(state, batch)
        print(peaks)  # peaks.records has the figures

    Args:
        programs: the compiled programs that a step runs (`jax.stages.Compiled`), where devices do not tell their peak.
            Without any, every program that the process holds is taken into account, so that the figure is one of the
            largest of them.
    """
    return StepPeaks(programs)


def _marks() -> dict[str, int]:
    """The highest marks of the devices since the process began; empty unless all of them tell theirs."""
    marks = {}
    for device in jax.local_devices():
        told = device.memory_stats() or {}
        if not told.get("peak_bytes_in_use"):
            return {}
        marks[str(device)] = int(told["peak_bytes_in_use"])
    return marks


def _needed(executable: Any) -> int:
    """Bytes on a device that a program needs on top of its arguments."""
    memory = executable.get_compiled_memory_stats()
    needed: int = memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    return needed
