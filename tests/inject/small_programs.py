"""Programs that compile in a blink and whose temporary memory depends on the order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def branches(x: Any, w: Any) -> Any:
    """Independent branches with a large result each: stock keeps them all, `latest_first` one at a time."""
    total = jnp.float32(0)
    for i in range(6):
        hidden = x * (i + 1.0) @ w[0]
        total += jnp.sum(jnp.tanh(hidden) @ w[i][:, :2])
    return total


def chain(x: Any, w: Any) -> Any:
    """A chain and its gradient: `largest_first` needs more than stock."""

    def loss(w: Any) -> Any:
        h = x
        for i in range(8):
            h = jnp.tanh(h @ w[i])
        return jnp.sum(h)

    return jax.value_and_grad(loss)(w)


def arguments(seed: int = 0) -> tuple[Any, Any]:
    """Arguments for both programs."""
    rng = np.random.default_rng(seed)
    return (
        jnp.asarray(rng.normal(size=(256, 128)), jnp.float32),
        jnp.asarray(rng.normal(size=(8, 128, 128)) / 12, jnp.float32),
    )


def stock_temp_bytes(fun: Any, *args: Any) -> int:
    """What stock XLA needs."""
    return int(jax.jit(fun).lower(*args).compile().memory_analysis().temp_size_in_bytes)


def assert_same_bits(left: Any, right: Any) -> None:
    """Every leaf has the same bytes, NaNs included."""
    left_leaves, left_tree = jax.tree.flatten(left)
    right_leaves, right_tree = jax.tree.flatten(right)
    assert left_tree == right_tree
    for a, b in zip(left_leaves, right_leaves, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
