"""A pipelined training loop, its memory served from an arena by a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xla_stalloc.inject import native

PROGRAM = """
import functools, json, types
import jax, jax.numpy as jnp, numpy as np
from xla_stalloc.inject import native, serving

@functools.partial(jax.jit, donate_argnums=0)
def step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) @ w - x) ** 2))(w)
    return w - 0.1 * gradient, value

x = w = jnp.linspace(-1, 1, 256 * 256).reshape(256, 256) / 16
w = w + 0
w, value = step(w, x)
w, value = step(w, x)
value.block_until_ready()

def plan(turns):
    global w
    with native.recording() as events:
        w, value = step(w, x)
        value.block_until_ready()
    asked = [e for e in events if e["bytes"]]
    sizes = [e["bytes"] for e in asked]
    one = [sum(-(-s // 64) * 64 for s in sizes[:i]) for i in range(len(sizes) + 1)]
    return types.SimpleNamespace(
        programs=[f"{asked[0]['program']:016x}"], cycle=0, run_slots=[turns], repeats=[True],
        # The loss is kept by the caller for as long as it likes: 0, not planned.
        slot_blocks=[len(sizes)] * turns, sizes=[0 if s == 4 else s for s in sizes] * turns, height=one[-1] * turns,
        offsets=[turn * one[-1] + offset for turn in range(turns) for offset in one[:-1]])

planned = plan(3)
if SERVE:
    serving.serve(planned, debug=DEBUG)
values = []
for _ in range(200):
    w, value = step(w, x)
    values.append(value)
    if len(values) % 20 == 0:
        values[-20:] = [float(v).hex() for v in values[-20:]]
print(json.dumps([values, serving.figures() if SERVE else None, jax.devices()[0].memory_stats(),
                  len(planned.sizes) // 3]))
"""


@pytest.fixture(scope="module")
def arenas(wrapper: Path) -> None:
    if not hasattr(native.library(), "stalloc_serve"):
        pytest.skip("built without plugins/arena")


@pytest.mark.parametrize("debug", [False, True])
def test_two_hundred_steps_hit_the_plan_and_lose_no_bit(debug: bool, stalloc: Callable[..., Any], arenas: None) -> None:
    stock, _, _, _ = stalloc(f"SERVE, DEBUG = False, False\n{PROGRAM}")
    served, figures, stats, requests = stalloc(f"SERVE, DEBUG = True, {debug}\n{PROGRAM}")
    assert served == stock
    assert len(set(served)) > 100, "the loss moves"
    assert figures["requests"] == 200 * requests
    assert figures["unknown_index"] == 200, "the losses, which are not planned"
    assert figures["hits"] == 200 * (requests - 1)
    assert figures["failures"] == figures["unknown_program"] == 0
    assert stats["bytes_in_use"] == pytest.approx(figures["in_use_bytes"], abs=2 * 256 * 256 * 4)


def test_a_plan_that_does_not_add_up_is_refused(stalloc: Callable[..., Any], arenas: None) -> None:
    said = stalloc(
        PROGRAM.split("if SERVE")[0]
        + """
messages = []
for change in ({"sizes": planned.sizes[:-1]}, {"slot_blocks": [1]}, {"height": 1}, {"cycle": 9}):
    try:
        serving.serve(types.SimpleNamespace(**{**vars(planned), **change}))
        messages.append("")
    except serving.ServingError as error:
        messages.append(str(error))
print(json.dumps(messages))
"""
    )
    assert all(said)
