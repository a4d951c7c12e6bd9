"""A plan of a whole job: where each allocation of each execution goes, to keep in a file and to serve from."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xla_stalloc import _core
from xla_stalloc.packing import Placement, solve
from xla_stalloc.plan.job.items import ALIGNMENT, MOST_TURNS, Items, items_of, problem_of
from xla_stalloc.plan.job.trace import Trace, program_key

SCHEMA = 1
_LARGEST_REGION = 1 << 46  # bytes: far more than any device has, far less than overflows


class JobPlanError(ValueError):
    """A job plan that is damaged, or belongs to another job: says what differs first."""


@dataclass(frozen=True)
class JobPlan:
    """Addresses for the executions of a job.

    Attributes:
        programs: fingerprint of the program of each run.
        cycle: the run that follows the last one.
        run_slots: int64[runs], executions that each run takes in turns.
        repeats: bool[runs], whether the turns go on for as long as the program runs.
        slot_blocks: int64[slots], allocations of each.
        offsets: int64[blocks], bytes in the region.
        sizes: int64[blocks], bytes; 0 for an allocation that is not planned.
        height: bytes of the region.
        lower_bound: bytes that no plan of this job can be below.
        context: what the plan was made for (versions, mesh, device): see `difference`.
    """

    programs: tuple[str, ...]
    cycle: int
    run_slots: NDArray[np.int64]
    repeats: NDArray[np.bool_]
    slot_blocks: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    height: int
    lower_bound: int
    context: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Whether every number lies where it may: a plan from a file is data that nobody vouches for.

        Raises:
            JobPlanError: names the first that does not.
        """
        columns = (
            ("run_slots", self.run_slots, len(self.programs), 1),
            ("repeats", self.repeats, len(self.programs), 0),
            ("slot_blocks", self.slot_blocks, int(self.run_slots.sum()), 0),
            ("offsets", self.offsets, int(self.slot_blocks.sum()), 0),
            ("sizes", self.sizes, int(self.slot_blocks.sum()), 0),
        )
        for name, column, length, least in columns:
            if len(column) != length:
                raise JobPlanError(f"{name} has {len(column)} entries instead of {length}")
            if len(column) and int(column.min()) < least:
                raise JobPlanError(f"{name} holds {int(column.min())}, which is below {least}")
        if not 0 <= self.height <= _LARGEST_REGION:
            raise JobPlanError(f"the height is {self.height} bytes, not between 0 and {_LARGEST_REGION}")
        if self.programs and not 0 <= self.cycle < len(self.programs):
            raise JobPlanError(f"the cycle starts at run {self.cycle} of {len(self.programs)}")
        over = (self.sizes > self.height) | (self.offsets > self.height - self.sizes)
        if over.any():
            raise JobPlanError(f"block {int(over.argmax())} ends above the height of {self.height} bytes")
        if (self.offsets % ALIGNMENT).any():
            raise JobPlanError(f"block {int((self.offsets % ALIGNMENT != 0).argmax())} is not aligned to {ALIGNMENT}")

    def difference(self, context: Mapping[str, str]) -> str:
        """The first thing in which another job differs from the one that this plan is of; "" if there is none."""
        for name in sorted({*self.context, *context}):
            planned, found = self.context.get(name, "nothing"), context.get(name, "nothing")
            if planned != found:
                return f"{name} was {planned} when the job was planned and is {found} now"
        return ""

    def arena(
        self,
        *,
        addresses: int = _LARGEST_REGION,
        capacity: int = _LARGEST_REGION,
        granularity: int = 4096,
        memory: bool = False,
        pipeline: int = 8,
        idle_fraction: float = 0.01,
        shadow: bool = False,
        poison: bool = False,
        red_zone: int = 0,
    ) -> _core.Arena:
        """An arena that serves from this plan; without `memory` it only keeps account, to simulate a job.

        Args:
            addresses: bytes of address space; the plan's region lies at its start.
            capacity: bytes that the simulated device has.
            granularity: bytes of a page of the simulated device.
            memory: host memory behind the addresses.
            pipeline: executions that may begin before an unplanned block is given back: it keeps out of theirs.
            idle_fraction: of the most bytes in use: what may stay reserved though nothing lives there.
            shadow: debug: a second account of what is live.
            poison: debug: overwrite what is released.
            red_zone: debug: bytes behind each block that is not planned, guarded like the slack of those that are.

        Raises:
            JobPlanError: see `check`.
        """
        self.check()
        return _core.Arena(
            height=self.height,
            cycle=self.cycle,
            programs=np.array([program_key(program) for program in self.programs], np.uint64),
            run_slots=self.run_slots,
            repeats=self.repeats.astype(np.uint8),
            slot_blocks=self.slot_blocks,
            offsets=self.offsets,
            sizes=self.sizes,
            addresses=addresses,
            capacity=capacity,
            granularity=granularity,
            memory=memory,
            pipeline=pipeline,
            idle_fraction=idle_fraction,
            shadow=shadow,
            poison=poison,
            red_zone=red_zone,
        )

    def to_json(self) -> str:
        """The plan as JSON; `from_json` reads it back to an equal plan."""
        raw: dict[str, Any] = {"schema": SCHEMA, **{name: getattr(self, name) for name in self.__dataclass_fields__}}
        raw = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in raw.items()}
        return json.dumps({**raw, "context": dict(self.context)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, origin: str) -> JobPlan:
        """Reads what `to_json` wrote, and checks it.

        Raises:
            JobPlanError: it is something else, or damaged; names the origin and what is wrong.
        """
        try:
            plan = _of_json(json.loads(text))
            plan.check()
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise JobPlanError(
                f"{origin}: expected a job plan as JobPlan.save writes it (schema {SCHEMA}), but {problem}; "
                "plan the job again"
            ) from error
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan as JSON; a reader sees the old file or the new one, never half of one.

        Raises:
            OSError: the file cannot be written.
        """
        target = Path(path)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                file.write(self.to_json())
                file.close()
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> JobPlan:
        """Reads what `save` wrote.

        Raises:
            JobPlanError: there is no such file, or see `from_json`.
        """
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise JobPlanError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from error
        return cls.from_json(text, os.fspath(path))


def plan_job(trace: Trace, context: Mapping[str, str] | None = None, seconds: float = 3.0) -> JobPlan:
    """Plans the addresses of a job from a trace of it.

    Args:
        trace: of a few iterations, or declared; what comes before the cycle is planned too.
        context: what else has to be the same for the plan to be used.
        seconds: of the search for a lower packing; it stops at the lower bound.

    Raises:
        TraceError: the trace contradicts itself.
        PlacementError: the plan is wrong; it should not happen.
    """
    items, placement = _packed(trace, 1, seconds)
    # Where steps in flight use several places in turns, the cycle closes only after a multiple of their number.
    for turns in range(items.turns + 1, MOST_TURNS + 1 if items.runs.period else 0):
        if placement.optimal:
            break
        wider = _packed(trace, turns, seconds)
        if wider[1].height < placement.height:
            items, placement = wider
    offsets = np.zeros(len(items.sizes), np.int64)
    planned = items.sizes[items.item] > 0
    offsets[items.item[planned]] = placement.offsets
    return JobPlan(
        programs=tuple(trace.programs[number] for number in _programs(items)),
        cycle=items.runs.cycle if items.runs.period else 0,
        run_slots=items.run_slots,
        repeats=items.repeats,
        slot_blocks=items.slot_blocks,
        offsets=offsets,
        sizes=items.sizes,
        height=placement.height,
        lower_bound=placement.lower_bound,
        context=dict(context or {}),
    )


def _packed(trace: Trace, turns: int, seconds: float) -> tuple[Items, Placement]:
    items = items_of(trace, turns)
    return items, solve(problem_of(trace.executions, items), seconds)


def _programs(items: Items) -> list[int]:
    runs = items.runs
    once = runs.program[: runs.cycle] if runs.period else runs.program
    cycle = runs.program[runs.cycle : runs.cycle + runs.period]
    return [*once.tolist(), *np.tile(cycle, items.turns).tolist()]


def _of_json(raw: Any) -> JobPlan:
    if not isinstance(raw, dict):
        raise ValueError(f"it holds a {type(raw).__name__}")
    if raw.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {raw.get('schema')!r}")
    if not all(isinstance(program, str) for program in raw["programs"]):
        raise ValueError("a program's fingerprint is no string")
    context = raw["context"]
    if not isinstance(context, dict) or not all(isinstance(value, str) for value in context.values()):
        raise ValueError("the context is not a mapping of strings")
    return JobPlan(
        programs=tuple(raw["programs"]),
        cycle=_integer(raw["cycle"], "cycle"),
        run_slots=_column(raw["run_slots"], "run_slots"),
        repeats=_column(raw["repeats"], "repeats").astype(bool),
        slot_blocks=_column(raw["slot_blocks"], "slot_blocks"),
        offsets=_column(raw["offsets"], "offsets"),
        sizes=_column(raw["sizes"], "sizes"),
        height=_integer(raw["height"], "height"),
        lower_bound=_integer(raw["lower_bound"], "lower_bound"),
        context=context,
    )


def _integer(value: Any, name: str) -> int:
    if type(value) is not int:
        raise ValueError(f"{name} is {value!r}, not an integer")
    return value


def _column(values: Any, name: str) -> NDArray[np.int64]:
    if not isinstance(values, list) or not all(type(value) in (int, bool) for value in values):
        raise ValueError(f"{name} is not a list of integers")
    if any(abs(value) > _LARGEST_REGION for value in values):
        raise ValueError(f"{name} holds a number beyond {_LARGEST_REGION}")
    return np.array(values, np.int64)
