"""The temporal and the spatial lever on the platform ``stalloc``: the same hook, the same bytes, the same outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PROGRAMS = {
    "temporal": "jnp.stack([jnp.sort((x + i) @ x, axis=0)[0] for i in range(8)])",
    "spatial": "jax.lax.associative_scan(jnp.matmul, jnp.stack([x, x + 1, x + 2, x + 3]))",
}


@pytest.mark.parametrize("lever", PROGRAMS)
def test_a_lever_works_through_the_plugin(lever: str, stalloc: Callable[..., Any]) -> None:
    levers, reason, stock, planned, equal, served = stalloc(f"""
import json, jax, jax.numpy as jnp, numpy as np
import xla_stalloc as stalloc
from xla_stalloc.inject import native

def f(x):
    return {PROGRAMS[lever]}

x = jnp.linspace(0, 1, 256 * 256).reshape(256, 256)
stock, planned = jax.jit(f).lower(x).compile(), stalloc.jit(f, mode="full").lower(x).compile()
a = np.asarray(stock(x))
with native.recording() as events:
    b = np.asarray(planned(x))
    b = np.asarray(planned(x))
print(json.dumps([planned.stalloc.levers, planned.stalloc.reason, stock.memory_analysis().temp_size_in_bytes,
                  planned.memory_analysis().temp_size_in_bytes, bool((a == b).all()), native.figures()["loads"]]))
""")
    if lever not in levers:
        pytest.skip(f"this JAX cannot: {reason}")
    assert planned < stock
    assert equal
    assert (served > 0) == (lever == "spatial"), "the executable with our offsets was loaded, not compiled"
