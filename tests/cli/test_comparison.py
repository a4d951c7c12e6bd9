"""The comparison that `train` and the benchmarks rest on must notice one bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xla_stalloc.cli.comparison import compare, same_bits


def step(state: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    return state + batch, (state * batch).sum()


def off_by_one_bit_at_the_end(state: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    state, loss = step(state, batch)
    last = np.asarray(state).copy()
    if batch[0] == 3:
        last[-1] = np.nextafter(last[-1], np.float32(np.inf))
    return jnp.asarray(last), loss


def test_equal_steps_are_equal() -> None:
    ticks: list[int] = []
    batches = [jnp.full(4, i, jnp.float32) for i in range(4)]
    found = compare(step, step, jnp.arange(4.0), batches, after_step=lambda: ticks.append(1))
    assert found.bit_identical
    assert found.losses == [0.0, 6.0, 20.0, 54.0]
    assert len(ticks) == 4
    assert found.step_seconds > 0
    assert found.step_ratio > 0


def test_one_bit_in_one_state_is_noticed() -> None:
    batches = [jnp.full(4, i, jnp.float32) for i in range(4)]
    assert not compare(step, off_by_one_bit_at_the_end, jnp.arange(4.0), batches).bit_identical
    assert compare(step, off_by_one_bit_at_the_end, jnp.arange(4.0), batches[:3]).bit_identical


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (np.float32([np.nan]), np.float32([np.nan]), True),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.float32([1.0]), np.float64([1.0]), False),
        (np.zeros((2, 3)), np.zeros((3, 2)), False),
        ([np.zeros(1)], (np.zeros(1),), False),
    ],
)
def test_bits_shapes_types_and_structure_count(left: Any, right: Any, same: bool) -> None:
    assert same_bits(left, right) is same
