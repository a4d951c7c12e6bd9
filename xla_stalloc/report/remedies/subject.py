"""The program that advice is for, with what is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from xla_stalloc.hlo import Module
from xla_stalloc.lifetimes import Assignment, Buffer, Kind, Lifetimes, Value
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.report.donation import Place
from xla_stalloc.report.kinds import Kinds

Away = tuple[int, int, int]
"""Bytes that are gone from one time of the schedule until before another: (begin, end, bytes)."""


@dataclass(frozen=True)
class Subject:
    """What all advice starts from.

    Attributes:
        module: compiled.
        lifetimes: of it.
        known: what its buffers hold.
        assignment: emulated, of the main memory.
        donated: the parts of arguments that the user donated.
        peak_bytes: of the report; None if not known.
        planned: what planning brings, if it was asked for.
        replicated: numbers of the parameters that are whole on every device; None if nothing tells.
    """

    module: Module
    lifetimes: Lifetimes
    known: Kinds
    assignment: Assignment
    donated: frozenset[Place]
    peak_bytes: int | None
    planned: PlanRecord | None = None
    replicated: frozenset[int] | None = None

    @cached_property
    def arguments(self) -> list[Value]:
        """The values of the program's arguments, tables of tuples included."""
        entry = {parameter.id for parameter in self.module.entry.parameters}
        return [value for value in self.lifetimes.values if value.instruction.id in entry]

    @cached_property
    def live(self) -> list[int]:
        """Bytes live in the temp allocation at each time of the schedule."""
        return self.lifetimes.live_bytes()

    @cached_property
    def temps(self) -> list[tuple[Buffer, Value]]:
        """Buffers that have memory of their own in the temp allocation, with their first value."""
        inside = {value.id for value in self.assignment.offsets}
        return [(b, b.values[0]) for b in self.lifetimes.buffers if b.kind is Kind.TEMP and b.values[0].id in inside]

    def peak_without(self, away: Iterable[Away]) -> int | None:
        """The peak when some bytes are gone for a while, by the curve of live bytes; None if it is not known."""
        if self.peak_bytes is None:
            return None
        change = [0] * (len(self.live) + 1)
        for begin, end, count in away:
            if begin < end:
                change[begin] -= count
                change[end] += count
        now, most = 0, 0
        for live, step in zip(self.live, change[:-1], strict=True):
            now += step
            most = max(most, live + now)
        return self.peak_bytes - (max(self.live, default=0) - most)

    def moves(self, new_peak: int | None) -> bool | None:
        """Whether a new peak is below the old one."""
        return None if new_peak is None or self.peak_bytes is None else new_peak < self.peak_bytes
