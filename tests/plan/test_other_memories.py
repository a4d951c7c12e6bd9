"""Memory that other devices reach into: the same offset on every device, whichever order a process runs."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from xla_stalloc import hlo
from xla_stalloc.hlo.rewrite import serialize
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.plan.verify import PlanError, verify

# In stock's order the small buffers are gone before the large ones come.
COLLECTIVE_MEMORY = """HloModule symmetric, is_scheduled=true, num_partitions=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[64] parameter(0)
  y = f32[128] parameter(1)
  first = f32[64]{0:S(1)} negate(x)
  first_sum = f32[64]{0:S(1)} all-reduce(first), replica_groups={}, channel_id=1, to_apply=add
  first_out = f32[64] sine(first_sum)
  second = f32[128]{0:S(1)} negate(y)
  second_sum = f32[128]{0:S(1)} all-reduce(second), replica_groups={}, channel_id=2, to_apply=add
  second_out = f32[128] sine(second_sum)
  plain = f32[64] cosine(x)
  ROOT results = (f32[64], f32[128], f32[64]) tuple(first_out, second_out, plain)
}
"""


@pytest.fixture
def stock() -> hlo.Module:
    return hlo.open(COLLECTIVE_MEMORY)


def ordered(stock: hlo.Module, *moves: tuple[str, str]) -> bytes:
    """Stock with each first instruction moved to before the second one."""
    order = [instruction.name for instruction in stock.entry.sequence]
    for name, before in moves:
        order.remove(name)
        order.insert(order.index(before), name)
    ids = {instruction.name: instruction.id for instruction in stock.entry.instructions}
    return serialize(stock, {}, {stock.entry.id: [ids[name] for name in order]})


def test_orders_that_leave_it_alone_pass(stock: hlo.Module) -> None:
    verify(stock, ordered(stock, ("plain", "first")))


def test_a_moved_buffer_is_named_where_others_may_run_stock(stock: hlo.Module) -> None:
    moved = ordered(stock, ("second", "first_out"))
    before, after = (of(module).assignment(1) for module in (stock, hlo.open(moved)))
    assert after.temp_bytes == before.temp_bytes, "only the offsets tell"
    with pytest.raises(PlanError, match=r"^first\w*: the planned order moves its buffer in memory that other"):
        verify(stock, moved)
    verify(stock, moved, pin_collectives=False)


def test_more_of_it_is_refused_everywhere(stock: hlo.Module) -> None:
    longer = ordered(stock, ("second", "first_sum"), ("second_sum", "first_sum"))
    with pytest.raises(PlanError, match=r"symmetric: needs 1,280 bytes of memory space 1, stock 1,024"):
        verify(stock, longer, pin_collectives=False)


def step(weights, x):
    def loss(weights):
        h = x
        for w in weights:
            h = jax.nn.softmax(h @ w) @ w.T + h
        return jnp.mean(h**2)

    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]


def test_devices_do_not_matter_to_a_plan() -> None:
    """The same program on other devices: the same plan, so the same offsets on each of them."""
    found = []
    for devices in (jax.devices()[:4], jax.devices()[4:]):
        mesh = Mesh(np.array(devices), "d")
        weights = [jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec()))] * 6
        x = jax.ShapeDtypeStruct((1024, 64), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("d")))
        module = hlo.open(jax.jit(step).lower(weights, x).compile())
        planned = plan_module(module.serialized, PlanOptions(pin_collectives=False)).serialized
        assert planned is not None
        lifetimes = of(hlo.open(planned))
        offsets = {(v.instruction.name, v.index): offset for v, offset in lifetimes.assignment().offsets.items()}
        found.append((module.fingerprint(), [i.name for i in lifetimes.schedule], offsets))
    assert found[0] == found[1]


LARGE_MESH = """
import sys, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from xla_stalloc import hlo
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
count = int(sys.argv[1])
mesh = Mesh(np.array(jax.devices()).reshape(-1, 4), ("d", "m"))
def loss(weights, x):
    for up, down in weights:
        x = x + jax.nn.softmax(x @ up) @ down
    return jnp.mean(x**2)
def spec(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*axes)))
weights = [(spec((64, 64), None, "m"), spec((64, 64), "m", None))] * 3
x = spec((64 * count // 4, 64), "d")
module = hlo.open(jax.jit(jax.grad(loss)).lower(weights, x).compile())
record = plan_module(module.serialized, PlanOptions()).record
assert module.num_partitions == count
print(len(module.instructions_by_id), record.stock_temp_bytes, record.temp_bytes, record.lower_bound_bytes)
"""


def test_many_devices_are_planned_as_few() -> None:
    """The same part of the work per device: the same number of instructions to plan, and the same bytes."""
    found = []
    for count in (8, 64):
        environment = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}
        command = [sys.executable, "-c", LARGE_MESH, str(count)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1]
