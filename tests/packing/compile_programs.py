"""Run with XLA_FLAGS that dump: compiles a few programs, so that XLA writes down how it packed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def mlp(weights: list[jax.Array], x: jax.Array) -> Any:
    def loss(weights: list[jax.Array]) -> jax.Array:
        hidden = x
        for weight in weights:
            hidden = jnp.tanh(hidden @ weight)
        return jnp.mean(hidden**2)

    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]


def attention(weights: list[jax.Array], x: jax.Array) -> Any:
    def loss(weights: list[jax.Array]) -> jax.Array:
        hidden = x
        for layer in range(0, len(weights), 4):
            query, key, value, out = (hidden @ weight for weight in weights[layer : layer + 4])
            hidden += jax.nn.softmax(query @ key.T / 8) @ value * out
        return jnp.sum(hidden)

    return jax.value_and_grad(loss)(weights)


def checkpointed(weights: list[jax.Array], x: jax.Array) -> Any:
    def loss(weights: list[jax.Array]) -> jax.Array:
        hidden = x
        for weight in weights:
            hidden = jax.checkpoint(lambda h, w: jnp.sin(jnp.tanh(h @ w) @ w.T))(hidden, weight)
        return jnp.sum(hidden)

    return jax.grad(loss)(weights)


def scanned(weights: list[jax.Array], x: jax.Array) -> Any:
    def loss(stacked: jax.Array) -> jax.Array:
        hidden, kept = lax.scan(lambda h, w: (jnp.tanh(h @ w), jnp.sum(h)), x, stacked)
        return jnp.sum(hidden) + jnp.sum(kept)

    return jax.grad(loss)(jnp.stack(weights))


def looped(weights: list[jax.Array], x: jax.Array) -> Any:
    def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, hidden = state
        return count + 1, lax.cond(count % 2 == 0, jnp.sin, lambda h: jnp.sort(h @ weights[0], axis=0), hidden)

    return lax.while_loop(lambda state: state[0] < 5, step, (jnp.int32(0), x))


def updated(weights: list[jax.Array], x: jax.Array) -> Any:
    table = jnp.stack(weights)
    for number in range(4):
        row = lax.dynamic_slice(table, (number % 2, 0, 0), (1, *x.shape[1:], x.shape[1]))
        table = lax.dynamic_update_slice(table, jnp.cos(row) @ weights[1], (1, number, 0))
    return table.at[0, 1].add(x[0])


def convolved(weights: list[jax.Array], x: jax.Array) -> Any:
    def loss(kernel: jax.Array) -> jax.Array:
        image = x.reshape(2, 32, 32, 1)
        for _ in range(3):
            image = jax.nn.relu(lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT))
        return jnp.sum(lax.reduce_window(image, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"))

    return jax.grad(loss)(weights[0][:3, :3].reshape(3, 3, 1, 1))


def factorized(weights: list[jax.Array], x: jax.Array) -> Any:
    square = x.T @ x + jnp.eye(x.shape[1])
    return jnp.linalg.cholesky(square), jnp.linalg.qr(weights[0])[0], jnp.fft.rfft(x), jnp.sort(x, axis=1)


LAYOUT = ("NHWC", "HWIO", "NHWC")
PROGRAMS: list[Callable[[list[jax.Array], jax.Array], Any]] = [
    mlp,
    attention,
    checkpointed,
    scanned,
    looped,
    updated,
    convolved,
    factorized,
]

if __name__ == "__main__":
    weights = [jax.ShapeDtypeStruct((64, 64), jnp.float32) for _ in range(12)]
    for program in PROGRAMS:
        jax.jit(program).lower(weights, jax.ShapeDtypeStruct((32, 64), jnp.float32)).compile()
