"""Orders that our packer is to place are judged by what lives at once, others by what XLA's packing makes of them."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from xla_stalloc.hlo import Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.inject import marker
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module


def tower(widths: tuple[int, ...]) -> Any:
    """The gradient of layers of many widths: XLA's packing leaves holes in most orders."""

    def loss(weights: Any, x: Any) -> Any:
        kept = []
        for weight in weights:
            x = jnp.tanh(x @ weight)
            kept.append(jnp.sort(x, axis=0)[:7])
        return sum(jnp.sum(k) for k in kept) + x.var()

    shapes = [jax.ShapeDtypeStruct((a, b), "float32") for a, b in itertools.pairwise(widths)]
    return jax.jit(jax.value_and_grad(loss)).lower(shapes, jax.ShapeDtypeStruct((96, widths[0]), "float32"))


@pytest.mark.parametrize("widths", [(64, 200, 72, 336, 56, 120), (300, 40, 260, 88, 500, 24, 130)])
def test_each_is_best_by_its_own_measure(widths: tuple[int, ...]) -> None:
    executable = tower(widths).compile().runtime_executable()
    serialized = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    plans = [plan_module(serialized, PlanOptions("full", spatial=spatial)) for spatial in (False, True)]
    holes, ours = (plan.record for plan in plans)
    assert ours.peak_live_bytes <= holes.peak_live_bytes
    assert holes.temp_bytes <= ours.temp_bytes
    assert ours.stock_temp_bytes == holes.stock_temp_bytes == executable.get_compiled_memory_stats().temp_size_in_bytes
    # Either record says what XLA will make of the order, which is how the emulation is held against the compiler.
    for plan in plans:
        assert plan.serialized is not None
        made = of(without_barriers(Module.from_bytes(plan.serialized, "plan")))
        assert made.temp_bytes({}) == plan.record.temp_bytes
        assert max(made.live_bytes()) == plan.record.peak_live_bytes


def test_the_choice_travels_with_the_program() -> None:
    computation = tower((64, 72)).compiler_ir()
    for spatial in (False, True):
        options = PlanOptions("full", 0.25, pin_collectives=False, spatial=spatial)
        marked = marker.marked(computation, options)
        frontend = str(marked.operation.attributes["mhlo.frontend_attributes"])
        assert f"spatial\\22: {str(spatial).lower()}" in frontend  # MLIR prints a quote as \22
        assert marker._decode(marker._encode(options)) == options
