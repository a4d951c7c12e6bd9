"""The graph of a real computation says what the module says: same peak, and only orders that XLA may run."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xla_stalloc as stalloc
from xla_stalloc import hlo
from xla_stalloc.hlo.barriers import BARRIER, without_barriers
from xla_stalloc.hlo.rewrite import serialize
from xla_stalloc.inject import hook
from xla_stalloc.lifetimes import Kind, of
from xla_stalloc.plan.options import PlannedModule
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.plan.verify import verify
from xla_stalloc.scheduling import verify_order
from xla_stalloc.scheduling.extract import Region, extract

WEIGHTS = jax.ShapeDtypeStruct((6, 48, 48), jnp.float32)
INPUT = jax.ShapeDtypeStruct((32, 48), jnp.float32)


def unrolled(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.mean(h**2)

    return weights - 0.1 * jax.grad(loss)(weights)


def checkpointed(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jax.checkpoint(lambda h, w: jnp.tanh(h @ w) @ w.T)(h, w)
        return jnp.sum(h)

    return weights - jax.grad(loss)(weights)


def scanned(weights, x):
    return jax.grad(lambda w: lax.scan(lambda h, w: (jnp.tanh(h @ w), h.sum()), x, w)[0].sum())(weights)


def branching(weights, x):
    def body(i, h):
        return lax.cond(i % 2 == 0, jnp.sin, lambda h: jnp.sort(h @ weights[0], axis=0), h)

    return lax.fori_loop(0, 3, body, x @ weights[1]), weights * 2


PROGRAMS = [unrolled, checkpointed, scanned, branching]


def at_the_hook(program) -> hlo.Module:
    """What XLA hands to the hook: scheduled, its optimization barriers still there."""
    seen: list[bytes] = []

    def look(serialized, options):
        seen.append(serialized)
        return PlannedModule(None, PlanRecord(module="looked at"))

    with hook.using(look):
        stalloc.jit(program, donate_argnums=0).lower(WEIGHTS, INPUT).compile()
    return hlo.Module.from_bytes(seen[0], program.__name__)


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda f: f.__name__)
def module(request) -> hlo.Module:
    return at_the_hook(request.param)


@pytest.fixture(scope="module")
def region(module) -> Region:
    return extract(module, of(without_barriers(module)), module.entry, pin_collectives=False)


def random_order(region: Region, rng: random.Random) -> list[int]:
    waiting = {node: set(before) for node, before in enumerate(region.graph.predecessors)}
    order: list[int] = []
    while waiting:
        order.append(rng.choice([node for node, before in waiting.items() if before.isdisjoint(waiting)]))
        del waiting[order[-1]]
    return order


def test_the_incumbent_has_the_peak_of_the_emulated_heap(module, region):
    lifetimes = of(without_barriers(module))
    assert region.graph.peak(region.graph.incumbent) == max(lifetimes.live_bytes()) > 0
    assert verify_order(region.graph, region.graph.incumbent) == max(lifetimes.live_bytes())


def test_an_order_has_every_instruction_once_and_stock_comes_back(module, region):
    stock = region.sequence(region.graph.incumbent)
    assert sorted(stock) == sorted(i.id for i in module.entry.instructions)
    again = hlo.Module.from_bytes(serialize(module, {}, {module.entry.id: stock}), "again")
    assert max(of(without_barriers(again)).live_bytes()) == max(of(without_barriers(module)).live_bytes())


def test_any_order_that_the_graph_allows_is_one_that_the_verifier_passes(module, region):
    rng = random.Random(0)
    for _ in range(12):
        order = random_order(region, rng)
        planned = serialize(module, {}, {module.entry.id: region.sequence(order)})
        verify(module, planned, pin_collectives=False)
        # The peak is what the module has then, but for what XLA moves out of the heap into arguments and results.
        lifetimes = of(without_barriers(hlo.Module.from_bytes(planned, "planned")))
        elsewhere = sum(buffer.bytes for buffer in lifetimes.assignment().reused if buffer.kind is Kind.TEMP)
        assert 0 <= verify_order(region.graph, order) - max(lifetimes.live_bytes()) <= elsewhere


def test_barriers_are_honoured():
    module = at_the_hook(checkpointed)
    barriers = [i for i in module.entry.instructions if i.opcode == BARRIER]
    if not barriers:
        pytest.skip("this jaxlib expands barriers before it schedules")
    region = extract(module, of(without_barriers(module)), module.entry)
    rng = random.Random(0)
    for _ in range(5):
        place = {id: step for step, id in enumerate(region.sequence(random_order(region, rng)))}
        for barrier in barriers:
            tied = barrier.operands[0].operands
            assert max(place[o.id] for o in tied) < place[barrier.id] < min(place[u.id] for u in barrier.users)
