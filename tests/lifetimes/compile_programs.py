"""Compiles many kinds of programs on XLA:CPU; run in a process of its own, with XLA_FLAGS that dump them.

Usage: python compile_programs.py  (prints one line per program: its name)
"""

import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

f32 = jnp.float32
S = jax.ShapeDtypeStruct


def mlp_step():
    """A training step whose state is donated."""
    optimizer = optax.adamw(1e-3)

    def loss(params, x):
        for w in params:
            x = jax.nn.gelu(x @ w)
        return (x**2).mean()

    def mlp_step(state, x):
        params, opt = state
        value, grads = jax.value_and_grad(loss)(params, x)
        updates, opt = optimizer.update(grads, opt, params)
        return (optax.apply_updates(params, updates), opt), value

    params = [S((64, 64), f32)] * 5
    return jax.jit(mlp_step, donate_argnums=0), ((params, jax.eval_shape(optimizer.init, params)), S((128, 64), f32))


def remat_chain():
    """Optimization barriers."""

    def loss(ws, x):
        for i in range(6):
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ w) @ w.T)(x, ws[i])
        return (x**2).sum()

    def remat_chain(ws, x):
        return jax.grad(loss)(ws, x)

    return jax.jit(remat_chain), (S((6, 32, 96), f32), S((64, 32), f32))


def scan_grad():
    """Loops with stacked residuals, and loop state that is handed through."""

    def scan_grad(w, x):
        def body(x, w):
            return jnp.tanh(x @ w), x.sum()

        return jax.grad(lambda w: lax.scan(body, x, w)[0].sum())(w)

    return jax.jit(scan_grad), (S((7, 48, 48), f32), S((32, 48), f32))


def nested_loops():
    """A while loop in a while loop, with a carry that changes places."""

    def nested_loops(x, y):
        def outer(carry):
            i, a, b = carry
            a = lax.fori_loop(0, i, lambda j, v: jnp.sin(v) + b, a)
            return i + 1, b, a

        return lax.while_loop(lambda c: c[0] < 5, outer, (0, x, y))

    return jax.jit(nested_loops, donate_argnums=(0, 1)), (S((64, 64), f32), S((64, 64), f32))


def branches():
    """Conditionals of both kinds, one inside a loop."""

    def branches(i, x):
        y = lax.switch(i, [lambda v: v * 2, lambda v: v @ v, lambda v: jnp.sort(v, 0)], x)

        def body(k, v):
            return lax.cond(k % 2 == 0, lambda u: u + y, lambda u: u @ u.T / 64.0, v)

        return lax.fori_loop(0, 4, body, y), y

    return jax.jit(branches), (S((), jnp.int32), S((64, 64), f32))


def in_place_updates():
    """Dynamic updates of a donated array and of loop state."""

    @functools.partial(jax.jit, donate_argnums=0)
    def in_place_updates(cache, keys):
        def body(i, c):
            return lax.dynamic_update_slice(c, keys[i][None] + c[i].sum(), (i, 0))

        cache = lax.fori_loop(0, 8, body, cache)
        return cache.at[0, 3].add(1.0), cache[5].sum()

    return in_place_updates, (S((256, 128), f32), S((8, 128), f32))


def copied_donation():
    """A donated array that is read before it is updated."""

    @functools.partial(jax.jit, donate_argnums=0)
    def copied_donation(x):
        return x.at[0, 0].add(1), x[0, 0], x[1].sum()

    return copied_donation, (S((512, 512), f32),)


def swapped_outputs():
    """Donated arguments that come back in each other's place, and one that nothing can take."""

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def swapped_outputs(x, y, z):
        return y + 1, x * 2, z.astype(jnp.bfloat16)

    return swapped_outputs, (S((128, 128), f32), S((128, 128), f32), S((64, 64), f32))


def sorts_and_tops():
    """Sorts with one and several operands, and computations applied per element."""

    def sorts_and_tops(x, k):
        order = jnp.argsort(x)
        values, places = lax.top_k(x, 16)
        return jnp.sort(x * 2), order, values.sum() + places.sum(), lax.sort((k, x), num_keys=1)

    return jax.jit(sorts_and_tops), (S((4096,), f32), S((4096,), jnp.int32))


def scatters():
    """Gathers and scatters, with their gradients."""

    def scatters(table, index, w):
        return jax.value_and_grad(lambda t: (t[index] * w).sum() + t.at[index].max(w).sum())(table)

    return jax.jit(scatters), (S((4096,), f32), S((512,), jnp.int32), S((512,), f32))


def convolutions():
    """Convolutions and reductions of windows."""

    def convolutions(x, k):
        def net(k):
            y = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            return (y**2).mean()

        return jax.value_and_grad(net)(k)

    return jax.jit(convolutions), (S((4, 32, 32, 8), f32), S((3, 3, 8, 16), f32))


def linear_algebra():
    """Custom calls, some with workspaces."""

    def linear_algebra(a, b):
        spd = a @ a.T + 64 * jnp.eye(64)
        q, r = jnp.linalg.qr(a)
        return jnp.linalg.solve(spd, b), jnp.linalg.eigh(spd)[0], q @ r, jnp.fft.rfft(b).real

    return jax.jit(linear_algebra), (S((64, 64), f32), S((64, 16), f32))


def random_numbers():
    """Many small integers, calls and bitcasts."""

    def random_numbers(key):
        keys = jax.random.split(key, 4)
        return (
            jax.random.normal(keys[0], (256, 256)),
            jax.random.permutation(keys[1], 512),
            jax.random.gamma(keys[2], 2.0),
        )

    return jax.jit(random_numbers), (S((2,), jnp.uint32),)


def callbacks():
    """Side effects and tokens."""

    def callbacks(x):
        y = jax.pure_callback(lambda v: np.asarray(v) * 2, S(x.shape, x.dtype), x @ x)
        jax.debug.callback(lambda v: None, y.sum())
        return y @ x

    return jax.jit(callbacks), (S((64, 64), f32),)


def unrolled_lstm_scan():
    """A scan with several carries and a reverse scan after it."""

    def unrolled_lstm_scan(w, x):
        def cell(w, carry, x):
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((16, 32))

        def loss(w):
            return lax.scan(functools.partial(cell, w), (zero, zero), x, reverse=True, unroll=2)[1].sum()

        return jax.grad(loss)(w)

    return jax.jit(unrolled_lstm_scan), (S((64, 128), f32), S((12, 16, 32), f32))


def sharded_matmuls():
    """Collectives of an SPMD program on a 4x2 mesh."""
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))

    def spec(shape, *axes):
        return S(shape, f32, sharding=NamedSharding(mesh, P(*axes)))

    def sharded_matmuls(ws, x):
        def loss(ws):
            y = x
            for up, down in ws:
                y = y + jax.nn.relu(y @ up) @ down
            return (y**2).mean()

        grads = jax.grad(loss)(ws)
        return jax.tree.map(lambda w, g: w - 0.1 * g, ws, grads)

    ws = [(spec((64, 256), None, "model"), spec((256, 64), "model", None))] * 3
    return jax.jit(sharded_matmuls, donate_argnums=0), (ws, spec((64, 64), "data", None))


PROGRAMS = (
    mlp_step,
    remat_chain,
    scan_grad,
    nested_loops,
    branches,
    in_place_updates,
    copied_donation,
    swapped_outputs,
    sorts_and_tops,
    scatters,
    convolutions,
    linear_algebra,
    random_numbers,
    callbacks,
    unrolled_lstm_scan,
    sharded_matmuls,
)

if __name__ == "__main__":
    for build in PROGRAMS:
        function, arguments = build()
        function.lower(*arguments).compile()
        print(build.__name__, flush=True)
