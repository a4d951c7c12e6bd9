"""A trace: the executions of a job, and the allocations of each, in the order in which they came and went.

A trace is recorded from a running job, or declared before it runs (`declare`). It is what STAlloc (arXiv 2507.16274)
profiles from one training iteration; here allocations belong to executions, and carry the index at which the program
asks for them, so that the same request is known again in the next iteration.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BEGIN, REQUEST, RELEASE = 0, 1, 2
"""Operations: an execution begins; it asks for bytes; a block is given back."""
NEVER = np.iinfo(np.int64).max
"""When a block ends that is not given back in the trace."""


class TraceError(ValueError):
    """A trace that contradicts itself: names the event."""


def program_key(fingerprint: str) -> int:
    """The 64 bits by which the arena knows a program."""
    return int.from_bytes(hashlib.blake2b(fingerprint.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Executions:
    """What the events say, as columns. Times are positions in the trace.

    Attributes:
        program: int64[executions], of the trace's programs.
        execution: int64[requests], which execution asked.
        index: int64[requests], the how-manieth request of the execution.
        bytes: int64[requests].
        start: int64[requests].
        end: int64[requests], exclusive; `NEVER` if it is not given back.
    """

    program: NDArray[np.int64]
    execution: NDArray[np.int64]
    index: NDArray[np.int64]
    bytes: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """Events in order.

    Attributes:
        programs: fingerprints; an upload from the host is a program too, of its shape and dtype.
        operations: uint8[events]: `BEGIN`, `REQUEST` or `RELEASE`.
        arguments: int64[events]: for `BEGIN` the number of the program; for `REQUEST` the index in the execution that
            asks, and for `RELEASE` the number of the request whose block goes.
        bytes: int64[events], of requests; otherwise 0.
    """

    programs: tuple[str, ...]
    operations: NDArray[np.uint8]
    arguments: NDArray[np.int64]
    bytes: NDArray[np.int64]

    @functools.cached_property
    def executions(self) -> Executions:
        """The same by execution and request.

        Raises:
            TraceError: the events contradict each other.
        """
        begins = self.operations == BEGIN
        requests = self.operations == REQUEST
        releases = np.flatnonzero(self.operations == RELEASE)
        program = self.arguments[begins]
        self._check(np.flatnonzero(begins), (program >= 0) & (program < len(self.programs)), "begins no known program")
        self._check(np.flatnonzero(requests), self.bytes[requests] >= 0, "asks for a negative number of bytes")
        start = np.flatnonzero(requests)
        execution = np.cumsum(begins)[requests] - 1
        self._check(start, execution >= 0, "asks before any execution began")
        released = self.arguments[releases]
        known = (released >= 0) & (released < len(start))
        self._check(releases, known, "releases no request")
        self._check(releases, start[released] < releases, "releases a block before it is asked for")
        order = np.argsort(released, kind="stable")
        twice = np.zeros(len(releases), bool)
        twice[order[1:]] = released[order[1:]] == released[order[:-1]]
        self._check(releases, ~twice, "releases a block for the second time")
        end = np.full(len(start), NEVER, np.int64)
        end[released] = releases
        return Executions(program, execution, self.arguments[requests], self.bytes[requests], start, end)

    @property
    def peak_live_bytes(self) -> int:
        """The most bytes that live at once."""
        changes = np.zeros(len(self.operations), np.int64)
        executions = self.executions
        changes[executions.start] = executions.bytes
        ended = executions.end != NEVER
        changes[executions.end[ended]] = -executions.bytes[ended]
        return int(np.cumsum(changes).max(initial=0))

    def arena_events(self) -> dict[str, NDArray[np.uint8] | NDArray[np.uint64]]:
        """The events as ``_core.Arena.replay`` takes them."""
        first = self.arguments.astype(np.uint64)
        begins = self.operations == BEGIN
        keys = np.array([program_key(program) for program in self.programs], np.uint64)
        first[begins] = keys[self.arguments[begins]]
        return {"operations": self.operations, "first": first, "bytes": self.bytes.astype(np.uint64)}

    @staticmethod
    def _check(events: NDArray[np.int64], right: NDArray[np.bool_], problem: str) -> None:
        if not right.all():
            raise TraceError(f"event {events[~right][0]} of the trace {problem}")


class TraceBuilder:
    """Writes a trace event by event."""

    def __init__(self) -> None:
        """An empty trace."""
        self._programs: dict[str, int] = {}
        self._events: list[tuple[int, int, int]] = []
        self._requests = 0
        self._index = 0

    def begin(self, program: str) -> None:
        """An execution of the program with this fingerprint begins; the requests that follow are its own."""
        self._events.append((BEGIN, self._programs.setdefault(program, len(self._programs)), 0))
        self._index = 0

    def request(self, bytes: int) -> int:
        """The execution asks for the next block; returns its number, for `release`."""
        self._events.append((REQUEST, self._index, bytes))
        self._index += 1
        self._requests += 1
        return self._requests - 1

    def release(self, request: int) -> None:
        """The block of that request is given back."""
        self._events.append((RELEASE, request, 0))

    def build(self) -> Trace:
        """The trace so far."""
        return trace_of(tuple(self._programs), self._events)


def trace_of(programs: Sequence[str], events: Sequence[tuple[int, int, int]]) -> Trace:
    """A trace of events, each (operation, argument, bytes)."""
    columns = np.array(events, np.int64).reshape(-1, 3)
    operations, arguments, bytes = (np.ascontiguousarray(column) for column in columns.T)
    return Trace(tuple(programs), operations.astype(np.uint8), arguments, bytes)
