"""From a trace to what has to be packed: one item for each planned allocation, alive whenever one of its turns is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.packing import Problem
from xla_stalloc.plan.job.cycle import Runs, runs_of
from xla_stalloc.plan.job.trace import NEVER, Executions, Trace

ALIGNMENT = 64
"""Bytes; what every device allocation of XLA is aligned to, at least."""
MOST_TURNS = 4
"""Of the cycle, until the plan itself comes back to the same addresses."""
_MOST_SLOTS = 8  # of a run in the cycle: what outlives so many executions is kept by the user, and never comes back


@dataclass(frozen=True)
class Items:
    """The planned allocations, ordered by run, slot and index.

    Attributes:
        runs: of the plan: those before the cycle, then the cycle, `turns` times.
        turns: of the cycle, after which a plan comes back to the same addresses.
        run_slots: int64[runs], executions after which a run comes back to the same addresses.
        repeats: bool[runs], whether a run was seen to have more executions than slots.
        slot_blocks: int64[slots], items of each slot.
        sizes: int64[items], bytes, multiples of `ALIGNMENT`; 0 for one that overlaps itself however many turns it
            gets: the user keeps it, and the arena finds a place for it.
        item: int64[requests], which item each request of the trace belongs to.
    """

    runs: Runs
    turns: int
    run_slots: NDArray[np.int64]
    repeats: NDArray[np.bool_]
    slot_blocks: NDArray[np.int64]
    sizes: NDArray[np.int64]
    item: NDArray[np.int64]


@dataclass
class _Keys:
    """Which slot each execution uses, with so many slots for each run and turns of the cycle."""

    runs: Runs
    run_of: NDArray[np.int64]
    turns: int = 1
    slots: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def plan_run(self, run: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.runs.period == 0:
            return run
        inside = (run - self.runs.cycle) % (self.runs.period * self.turns) + self.runs.cycle
        return np.where(run < self.runs.cycle, run, inside)

    @property
    def plan_runs(self) -> int:
        return len(self.runs.program) if self.runs.period == 0 else self.runs.cycle + self.runs.period * self.turns

    def slot(self) -> NDArray[np.int64]:
        """int64[executions], counted over the whole plan."""
        run = self.plan_run(self.run_of)
        first = np.cumsum(self.slots) - self.slots
        position = np.arange(len(self.run_of)) - self.runs.first[self.run_of]
        return np.asarray(first[run] + position % self.slots[run])


def items_of(trace: Trace, turns: int = 1) -> Items:
    """Groups the requests of a trace by what the arena will know them by: run, slot, index.

    Every run starts with one slot, and the cycle with `turns`. Where two lives of one item overlap, as those of the
    outputs of step k and k + 1 do, the run gets more slots, or the cycle more turns, until they no longer do.

    Raises:
        TraceError: the trace contradicts itself.
    """
    executions = trace.executions
    runs = runs_of(executions.program)
    keys = _Keys(runs, np.repeat(np.arange(len(runs.program)), runs.length), turns if runs.period else 1)
    keys.slots = np.ones(keys.plan_runs, np.int64)
    longest = _longest(keys)
    while True:
        item, slot_blocks = _item_of(executions, keys)
        broken = _overlapping(executions, item)
        if not len(broken):
            break
        if not _widen(keys, executions, broken, longest):
            break
        longest = _longest(keys)
    sizes = np.zeros(int(slot_blocks.sum()), np.int64)
    np.maximum.at(sizes, item, np.maximum(executions.bytes, 1))
    sizes = -(-sizes // ALIGNMENT) * ALIGNMENT
    sizes[item[_alike(executions, broken, runs)]] = 0
    return Items(runs, keys.turns, keys.slots, keys.slots < _executions(keys), slot_blocks, sizes, item)


def _executions(keys: _Keys) -> NDArray[np.int64]:
    """int64[runs of the plan]: the most executions that any of a run's repetitions has."""
    executions = np.ones(keys.plan_runs, np.int64)
    np.maximum.at(executions, keys.plan_run(np.arange(len(keys.runs.program))), keys.runs.length)
    return executions


def _longest(keys: _Keys) -> NDArray[np.int64]:
    """int64[runs of the plan]: the most slots that a run can use."""
    executions = _executions(keys)
    in_cycle = np.arange(keys.plan_runs) >= keys.plan_runs - keys.runs.period * keys.turns
    return np.where(in_cycle, np.minimum(executions, _MOST_SLOTS), executions)


def _item_of(executions: Executions, keys: _Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    slot = keys.slot()[executions.execution]
    blocks = np.zeros(int(keys.slots.sum()), np.int64)
    np.maximum.at(blocks, slot, executions.index + 1)
    return np.asarray((np.cumsum(blocks) - blocks)[slot] + executions.index), blocks


def _overlapping(executions: Executions, item: NDArray[np.int64]) -> NDArray[np.int64]:
    """The requests that come while an earlier block of the same item still lives."""
    order = np.lexsort((executions.start, item))
    same = item[order[1:]] == item[order[:-1]]
    return np.asarray(order[1:][same & (executions.end[order[:-1]] > executions.start[order[1:]])])


def _alike(executions: Executions, broken: NDArray[np.int64], runs: Runs) -> NDArray[np.int64]:
    """The requests of the cycle with the program and index of one of these: what is kept once is kept every time."""
    program = executions.program[executions.execution]
    pair = program * (int(executions.index.max(initial=0)) + 1) + executions.index
    start = runs.first[runs.cycle] if runs.period else 0
    return np.flatnonzero(np.isin(pair, pair[broken]) & (executions.execution >= start))


def _widen(keys: _Keys, executions: Executions, broken: NDArray[np.int64], longest: NDArray[np.int64]) -> bool:
    """More slots for the runs of these requests, and if there is an execution for each already, more turns."""
    wanting = np.unique(keys.plan_run(keys.run_of[executions.execution[broken]]))
    wider = wanting[keys.slots[wanting] < longest[wanting]]
    if len(wider):
        keys.slots[wider] = np.minimum(keys.slots[wider] * 2, longest[wider])
        return True
    if keys.runs.period == 0 or keys.turns >= MOST_TURNS:
        return False
    keys.turns += 1
    keys.slots = np.concatenate((keys.slots, keys.slots[-keys.runs.period :]))
    return True


def problem_of(executions: Executions, items: Items) -> Problem:
    """What has to be packed: one buffer for each request that is planned, those of one item colocated."""
    last = int(max(executions.start.max(initial=0), executions.end[executions.end != NEVER].max(initial=0))) + 1
    planned = items.sizes[items.item] > 0
    item = items.item[planned]
    several = np.bincount(item, minlength=len(items.sizes)) > 1
    return Problem(
        lower=executions.start[planned],
        upper=np.minimum(executions.end[planned], last),
        size=items.sizes[item],
        alignment=np.array(ALIGNMENT),
        group=np.where(several[item], item, -1),
    )
