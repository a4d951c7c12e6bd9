"""Kinds of temps in a training step: what is kept for the backward is found, and what the optimizer makes is not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xla_stalloc import hlo
from xla_stalloc.report.map.boxes import memory_map
from xla_stalloc.report.map.colours import scheme
from xla_stalloc.report.map.labels import labels


def test_residuals_are_what_the_forward_keeps() -> None:
    def loss(ws: Any, x: Any) -> Any:
        for number, w in enumerate(ws):
            with jax.named_scope(f"layer_{number}"):
                x = jnp.tanh(x @ w)
        return (x**2).sum()

    ws = [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 5
    x = jax.ShapeDtypeStruct((256, 64), jnp.float32)
    drawn = memory_map(hlo.open(jax.jit(jax.grad(loss)).lower(ws, x).compile()))
    told = labels(drawn)
    kinds = np.array([told.kind[number] for number in range(len(drawn.values))])
    residuals = drawn.bytes[kinds == "residual"]
    assert (residuals == 256 * 64 * 4).sum() >= 4
    assert {"arguments", "outputs", "residual"} <= set(kinds.tolist())
    colours = scheme("layer", drawn, told)
    assert [name for name in colours.names if name.startswith("layer_")] == [f"layer_{n}" for n in range(5)]
    assert len(set(colours.colours)) == len(colours.colours)
    live = dict(zip(colours.names, colours.live_at_peak(drawn, told), strict=True))
    assert sum(count for name, count in live.items() if name.startswith("layer_")) > 0.5 * drawn.peak_bytes
