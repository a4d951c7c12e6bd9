"""Planners that are not the planner: what the injection does must not depend on how good a plan is."""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable
from typing import Any

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.plan.options import PlannedModule, PlanOptions
from xla_stalloc.plan.record import PlanRecord

Planner = Callable[[bytes, PlanOptions], PlannedModule]

HUGE = 1 << 60
"""As a stock figure: whatever the planned program needs is clearly less."""


def latest_first(instruction: Any, position: int) -> int:
    """Of the instructions that are ready, take the one that stock runs last: changes nearly every program."""
    return -position


def unchanged(instruction: Any, position: int) -> int:
    """Stock's own order, dressed as a plan."""
    return position


def largest_first(instruction: Any, position: int) -> int:
    """Of the instructions that are ready, take the one with the largest result: bad on purpose."""
    return -math.prod(instruction.shape.dimensions)


def reordering(rank: Callable[[Any, int], int] = latest_first, stock_temp_bytes: int = HUGE) -> Planner:
    """A valid order of the entry computation by the given rank, with any figure of stock."""

    def plan(serialized: bytes, options: PlanOptions) -> PlannedModule:
        module = hlo_pb2.HloModuleProto.FromString(serialized)
        ids = module.schedule.sequences[module.entry_computation_id].instruction_ids
        entry = next(c for c in module.computations if c.id == module.entry_computation_id)
        order = _kahn(entry, list(ids), rank)
        assert sorted(order) == sorted(ids)
        ids[:] = order
        return PlannedModule(module.SerializeToString(), record(module.name, options, stock_temp_bytes))

    return plan


def _kahn(entry: Any, stock: list[int], rank: Callable[[Any, int], int]) -> list[int]:
    position = {identity: i for i, identity in enumerate(stock)}
    # Parameters stay in front, where XLA has them.
    ranks = {i.id: (i.opcode != "parameter", rank(i, position[i.id]), position[i.id]) for i in entry.instructions}
    needs = {i.id: {*i.operand_ids, *i.control_predecessor_ids} for i in entry.instructions}
    users: dict[int, list[int]] = {i: [] for i in needs}
    for i, before in needs.items():
        for b in before:
            users[b].append(i)
    waiting = {i: len(before) for i, before in needs.items()}
    ready = [(ranks[i], i) for i, count in waiting.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (ranks[user], user))
    return order


def record(
    module: str, options: PlanOptions, stock_temp_bytes: int, levers: tuple[str, ...] = ("temporal",)
) -> PlanRecord:
    """A record as the planner makes it, with figures that are easy to recognise."""
    return PlanRecord(
        module=module,
        fingerprint="0123abcd",
        mode=options.mode,
        stock_temp_bytes=stock_temp_bytes,
        temp_bytes=1,
        peak_live_bytes=3,
        lower_bound_bytes=2,
        levers=levers,
        plan_seconds=0.25,
    )


def content(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """Finds nothing better than stock."""
    name = hlo_pb2.HloModuleProto.FromString(serialized).name
    return PlannedModule(None, record(name, options, 0, ()).because("stock is best"))


def raising(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """Fails."""
    raise RuntimeError("the planner is broken on purpose")


def garbage(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """Hands back bytes that are no module."""
    return PlannedModule(b"\xff\xffnot a module", record("garbage", options, HUGE))


def backwards(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """An order that runs users before their operands: XLA refuses it."""
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    ids = module.schedule.sequences[module.entry_computation_id].instruction_ids
    ids[:] = list(reversed(ids))
    return PlannedModule(module.SerializeToString(), record(module.name, options, HUGE))


class Counting:
    """Counts the calls of a planner, and remembers what it was asked."""

    def __init__(self, planner: Planner) -> None:
        """Wraps a planner."""
        self.planner = planner
        self.asked: list[PlanOptions] = []
        self._lock = threading.Lock()

    def __call__(self, serialized: bytes, options: PlanOptions) -> PlannedModule:
        """Plans, and counts."""
        with self._lock:
            self.asked.append(options)
        return self.planner(serialized, options)
