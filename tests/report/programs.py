"""Small programs of every kind that a report has to get right: name -> (jitted function, arguments)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

S, f32 = jax.ShapeDtypeStruct, jnp.float32
SQUARE = S((64, 64), f32)


def nothing_donated() -> Any:
    return jax.jit(lambda a, b: (a @ b).sum() + a), (SQUARE, SQUARE)


def donated_state() -> Any:
    def step(state: Any, x: Any) -> Any:
        grads = jax.grad(lambda ws: sum((jnp.tanh(x @ w) ** 2).sum() for w in ws))(state["w"])
        return {"w": [w - 0.1 * g for w, g in zip(state["w"], grads, strict=True)], "n": state["n"] + 1}, x.sum()

    return jax.jit(step, donate_argnums=0), ({"w": [SQUARE] * 4, "n": S((), jnp.int32)}, SQUARE)


def nested_outputs() -> Any:
    return jax.jit(lambda a: {"x": (a + 1, [a.T, a * 2]), "y": jnp.zeros((3, 5))}), (SQUARE,)


def handed_through() -> Any:
    return jax.jit(lambda a, b: (a, a, b + 1)), (SQUARE, SQUARE)


def unused_argument() -> Any:
    return jax.jit(lambda a, b: b * 2, donate_argnums=(0, 1)), (S((7, 9), f32), SQUARE)


def loop() -> Any:
    def run(w: Any, x: Any) -> Any:
        return lax.scan(lambda x, w: (jnp.sin(x @ w), (x**2).sum()), x, w)

    return jax.jit(jax.grad(lambda w, x: run(w, x)[1].sum())), (S((6, 32, 32), f32), S((16, 32), f32))


def branches() -> Any:
    def run(p: Any, a: Any) -> Any:
        return lax.cond(p, lambda a: jnp.sort(a @ a, axis=0), lambda a: a + 1, a)

    return jax.jit(run), (S((), jnp.bool_), SQUARE)


def small_types() -> Any:
    return jax.jit(lambda a, b: (a.astype(jnp.int8), b & True)), (S((33,), jnp.bfloat16), S((5, 3), jnp.bool_))


def no_arguments() -> Any:
    return jax.jit(lambda: jnp.arange(100.0).reshape(4, 25)), ()


def sharded() -> Any:
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
    x = S((64, 64), f32, sharding=NamedSharding(mesh, P("data", None)))
    w = S((64, 64), f32, sharding=NamedSharding(mesh, P(None, "model")))
    return jax.jit(lambda w, x: (w - jax.grad(lambda w: ((x @ w) ** 2).mean())(w), x.sum()), donate_argnums=0), (w, x)


PROGRAMS = (
    nothing_donated,
    donated_state,
    nested_outputs,
    handed_through,
    unused_argument,
    loop,
    branches,
    small_types,
    no_arguments,
    sharded,
)
