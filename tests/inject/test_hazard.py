"""Why the verifier looks at what shares memory: XLA takes an order that overwrites too early, and computes nonsense."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_programs import assert_same_bits

import xla_stalloc as stalloc
from xla_stalloc import hlo
from xla_stalloc.hlo.rewrite import serialize
from xla_stalloc.inject import hook, limits
from xla_stalloc.plan.options import PlannedModule
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.plan.verify import PlanError, verify

X = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def read_then_update(x):
    """XLA copies the donated argument, because it does not see that the reading could come first."""
    y = x[0, 0]
    return x.at[0, 0].add(1), y


needs_donation = pytest.mark.skipif(limits.RESETS_ENTRY, reason="this jaxlib loses donation: nothing is injected")


@needs_donation
def test_the_copy_goes_and_the_bits_stay():
    compiled = stalloc.jit(read_then_update, donate_argnums=0).lower(X).compile()
    record = compiled.stalloc
    assert record.levers == ("temporal",)
    assert compiled.memory_analysis().temp_size_in_bytes == record.temp_bytes < record.stock_temp_bytes
    assert_same_bits(compiled(jnp.asarray(X)), jax.jit(read_then_update)(X))


@needs_donation
def test_an_update_before_the_reading_gives_wrong_numbers_and_the_verifier_says_so():
    refused: list[str] = []

    def without_hazards(serialized, options):
        """The planner's own result, but what overwrites the argument runs before what reads it."""
        stock = hlo.Module.from_bytes(serialized, "stock")
        planned = plan_module(serialized, options)
        proto = hlo.Module.from_bytes(planned.serialized, "planned").proto
        readers: set[int] = set()
        for message in (i for computation in proto.computations for i in computation.instructions):
            readers.update(message.control_predecessor_ids)
            message.ClearField("control_predecessor_ids")
        free = hlo.Module(proto, "without control dependencies")
        first = [i.id for i in free.entry.sequence if i.id not in readers and i.opcode != "tuple"]
        order = [*first, *(i.id for i in free.entry.sequence if i.id not in first)]
        broken = serialize(free, {}, {free.entry.id: order})
        try:
            verify(stock, broken)
        except PlanError as error:
            refused.append(str(error))
        return PlannedModule(broken, planned.record)

    with hook.using(without_hazards):
        compiled = stalloc.jit(read_then_update, donate_argnums=0).lower(X).compile()
    assert refused, compiled.stalloc.reason
    assert "may have overwritten it" in refused[0]
    assert compiled.stalloc.levers == ("temporal",)
    _, y = compiled(jnp.asarray(X))
    assert float(y) == X[0, 0] + 1  # it should be X[0, 0]
