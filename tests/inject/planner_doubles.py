"""Planners that are not the planner: what the injection does must not depend on how good a plan is."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.plan.options import PlannedModule, PlanOptions
from xla_stalloc.plan.record import PlanRecord

Planner = Callable[[bytes, PlanOptions], PlannedModule]

HUGE = 1 << 60
"""As a stock figure: whatever the planned program needs is clearly less."""


def reordering(stock_temp_bytes: int = HUGE, latest_first: bool = True) -> Planner:
    """Another valid order of the entry computation, with any figure of stock.

    ``latest_first`` takes the ready instruction that stock runs last, which changes nearly every program; the other
    way gives the same order as stock, wrapped as if it were a plan.
    """

    def plan(serialized: bytes, options: PlanOptions) -> PlannedModule:
        module = hlo_pb2.HloModuleProto.FromString(serialized)
        sequence = module.schedule.sequences[module.entry_computation_id]
        entry = next(c for c in module.computations if c.id == module.entry_computation_id)
        order = _kahn(entry, list(sequence.instruction_ids), latest_first)
        assert sorted(order) == sorted(sequence.instruction_ids)
        sequence.instruction_ids[:] = order
        return PlannedModule(module.SerializeToString(), record(module.name, options, stock_temp_bytes))

    return plan


def _kahn(entry: hlo_pb2.HloComputationProto, stock: list[int], latest_first: bool) -> list[int]:
    position = {identity: i for i, identity in enumerate(stock)}
    needs = {i.id: {*i.operand_ids, *i.control_predecessor_ids} for i in entry.instructions}
    # Parameters stay in front: XLA schedules them there, and so do we.
    rank = {
        i.id: (i.opcode != "parameter", -position[i.id] if latest_first else position[i.id]) for i in entry.instructions
    }
    ready = [(rank[i], i) for i, before in needs.items() if not before]
    heapq.heapify(ready)
    users: dict[int, list[int]] = {i: [] for i in needs}
    for i, before in needs.items():
        for b in before:
            users[b].append(i)
    waiting = {i: len(before) for i, before in needs.items()}
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (rank[user], user))
    return order


def record(
    module: str, options: PlanOptions, stock_temp_bytes: int, levers: tuple[str, ...] = ("temporal",)
) -> PlanRecord:
    """A record as the planner makes it, with figures that are easy to recognise."""
    return PlanRecord(
        module=module,
        fingerprint=f"f{len(module):03d}",
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
    """Hands XLA bytes that are no module."""
    return PlannedModule(b"\xff\xffnot a module", record("garbage", options, HUGE))


def backwards(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """An order that runs users before their operands."""
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    ids = module.schedule.sequences[module.entry_computation_id].instruction_ids
    ids[:] = list(reversed(ids))
    return PlannedModule(module.SerializeToString(), record(module.name, options, HUGE))


class Counting:
    """Counts the calls of a planner, and remembers what it was asked."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.asked: list[PlanOptions] = []
        self._lock = threading.Lock()

    def __call__(self, serialized: bytes, options: PlanOptions) -> PlannedModule:
        with self._lock:
            self.asked.append(options)
        return self.planner(serialized, options)
