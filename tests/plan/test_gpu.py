"""A program of the real GPU compiler, from its order to ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xla_stalloc import hlo
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.options import DEFAULT_CARD, PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.scheduling.cost import CARDS, Costs
from xla_stalloc.scheduling.extract import choices, extract
from xla_stalloc.scheduling.overlap import Comparison, times

PROGRAMS = Path(os.environ.get("XLA_STALLOC_PROGRAMS") or Path(__file__).parents[3] / "shared" / "programs")

pytestmark = pytest.mark.skipif(not PROGRAMS.is_dir(), reason="set XLA_STALLOC_PROGRAMS to a folder of device programs")


@pytest.fixture(scope="module")
def stock() -> hlo.Module:
    return hlo.open(PROGRAMS / "gpu_tiny.hlo.pb.xz")


@pytest.fixture(scope="module")
def planned(stock) -> hlo.Module:
    found = plan_module(stock.serialized, PlanOptions(pin_collectives=False))
    assert found.record.levers == ("temporal",)
    assert found.record.temp_bytes < 0.75 * found.record.stock_temp_bytes
    assert found.record.lower_bound_bytes <= found.record.peak_live_bytes
    assert found.serialized == plan_module(stock.serialized, PlanOptions(pin_collectives=False)).serialized
    return hlo.Module.from_bytes(found.serialized, "planned")


def test_transfers_are_awaited_elsewhere(stock, planned):
    """Asynchronous operations were free to move, and still each start is before its done."""
    distances = []
    for module in (stock, planned):
        place = {i.id: step for step, i in enumerate(module.entry.sequence)}
        pairs = [(i, i.operands[0]) for i in module.entry.sequence if i.opcode == "async-done"]
        distances.append([place[done.id] - place[start.id] for done, start in pairs])
    assert min(distances[1]) > 0 and distances[0] != distances[1]


def test_a_memory_budget_is_spent_on_overlap(stock, planned):
    """Never above the budget; and the more bytes there are, the less communication is exposed."""

    def exposed(module):
        total = 0
        lifetimes = of(without_barriers(stock))
        for computation in stock.computations:
            if computation.id in lifetimes.dataflow.order and choices(computation) > 2:
                region = extract(stock, lifetimes, computation, pin_collectives=False)
                known = times(computation, region.members, Costs(CARDS[DEFAULT_CARD]))
                after = next(c for c in module.computations if c.id == computation.id)
                total += Comparison(region.graph, known).exposed(region.order(i.id for i in after.sequence))[0]
        return total

    before = exposed(planned)
    for budget in (70_000_000, 90_000_000):
        found = plan_module(stock.serialized, PlanOptions(pin_collectives=False, memory_budget_bytes=budget))
        assert found.record.temp_bytes <= budget and not found.record.reason
        after = exposed(hlo.Module.from_bytes(found.serialized, "within the budget"))
        assert after < before
        before = after


def test_a_budget_that_is_too_small_is_told(stock):
    free = plan_module(stock.serialized, PlanOptions(pin_collectives=False)).record
    found = plan_module(stock.serialized, PlanOptions(pin_collectives=False, memory_budget_bytes=1)).record
    assert found.temp_bytes <= free.temp_bytes and "memory budget, 1 bytes" in found.reason


def test_pinned_collectives_keep_their_order(stock):
    pinned = plan_module(stock.serialized, PlanOptions(pin_collectives=True))
    if pinned.serialized is not None:
        after = hlo.Module.from_bytes(pinned.serialized, "pinned")
        starts = [[i.name for i in m.entry.sequence if i.opcode == "async-start"] for m in (stock, after)]
        assert starts[0] == starts[1]
