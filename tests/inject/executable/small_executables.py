"""Programs that together have every kind of thunk that jax makes on a CPU, compiled once; and packers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from xla_stalloc.inject.executable.problem import ALIGNMENT, Block

N = 64


def argument() -> Any:
    return jnp.asarray(np.random.default_rng(0).normal(size=(N, N)), jnp.float32)


def products(x: Any) -> Any:
    return jnp.sin(jnp.concatenate([x @ x, jnp.sin(x), x.T @ x]) @ x) @ x


def integer_products(x: Any) -> Any:
    y = x.astype(jnp.int32)
    return (y @ (y + 1)) @ y


def branches(x: Any) -> Any:
    y = x @ x
    return lax.cond(y.sum() > 0, lambda y: jnp.sin(y) @ y, lambda y: jnp.cos(y.T) @ y * 2, y).sum(0)


def switched(x: Any) -> Any:
    y = x @ x
    on = [lambda y: jnp.sin(y) @ y, lambda y: jnp.tanh((y + 1) @ y.T) @ y, lambda y: y]
    return jnp.sin(jnp.sort(lax.switch(jnp.int32(y[0, 0]) % 3, on, y) + y)) @ x


def loop(x: Any) -> Any:
    def body(carry: Any) -> Any:
        y, z, i = carry
        return jnp.tanh(y @ z) + y, jnp.cos(z), i + 1

    y, z, _ = lax.while_loop(lambda carry: (carry[0].sum() < 1e4) & (carry[2] < 5), body, (x @ x, x, 0))
    return y @ z


def scan(x: Any) -> Any:
    def body(carry: Any, z: Any) -> Any:
        carry = jnp.tanh(carry @ x + z)
        return carry, (carry * 2).sum(0)

    last, sums = lax.scan(body, x @ x, jnp.arange(5.0))
    return last @ x, jnp.sin(sums) @ x


def nested_loops(x: Any) -> Any:
    def outer(carry: Any, z: Any) -> Any:
        inner, _ = lax.scan(lambda c, w: (jnp.sin(c @ x + w), None), carry * z, jnp.arange(3.0))
        return lax.cond(z > 1, lambda c: c @ x, lambda c: jnp.cos(c), inner), inner.sum()

    last, sums = lax.scan(outer, x @ x, jnp.arange(4.0))
    return jnp.sin(jnp.sort(last)) @ x, sums


def sort(x: Any) -> Any:
    return jnp.sort(jnp.sin(x @ x), axis=0) @ x


def gather(x: Any) -> Any:
    return (x @ x)[jnp.argsort(x[0])].at[jnp.array([3, 5])].add(x[:2]) @ x


def top(x: Any) -> Any:
    values, indices = lax.top_k(jnp.sin(x @ x), 5)
    return values * 2, indices + 1


def fourier(x: Any) -> Any:
    return jnp.abs(jnp.fft.fft(jnp.sin(x @ x))) @ x


def convolution(x: Any) -> Any:
    image, kernel = (
        jnp.sin(x).reshape(2, N // 4, N // 2, 4),
        jnp.cos(x.reshape(-1)[: 3 * 3 * 4 * 8]).reshape(3, 3, 4, 8),
    )
    y = lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(y).sum((1, 2))


def triangular(x: Any) -> Any:
    return jax.scipy.linalg.solve_triangular(jnp.tril(x) + 9 * jnp.eye(N), x @ x)


def random(x: Any) -> Any:
    return jnp.sin(lax.rng_uniform(0.0, 1.0, (N, N))) @ x


def _over_devices(body: Callable[[Any], Any], x: Any) -> Any:
    mesh = Mesh(np.array(jax.devices()), ("d",))
    spec = PartitionSpec("d")
    return jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)


_COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda x: jnp.sin(lax.psum(jnp.sin(x) @ x.T, "d")) @ x,
    "all_gather": lambda x: jnp.cos(lax.all_gather(jnp.sin(x), "d", tiled=True) @ x.T).T @ jnp.ones((N, N)),
    "reduce_scatter": lambda x: jnp.sin(lax.psum_scatter(jnp.sin(x).T @ x, "d", tiled=True)) @ x.T,
    "all_to_all": lambda x: jnp.sin(lax.all_to_all(jnp.sin(x @ x.T), "d", 1, 0, tiled=True)).sum(0, keepdims=True),
    "permute": lambda x: lax.ppermute(jnp.sin(x), "d", [(i, (i + 1) % 8) for i in range(8)]) @ x.T @ x,
    "device_number": lambda x: jnp.sin(x @ x.T) * lax.axis_index("d") @ x,
}

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f
    for f in (
        products, integer_products, branches, switched, loop, scan, nested_loops, sort, gather, top, fourier,
        convolution, triangular, random,
    )
} | {name: partial(_over_devices, body) for name, body in _COLLECTIVES.items()}  # fmt: skip


@cache
def serialized(name: str) -> bytes:
    """A program's executable."""
    data: bytes = jax.jit(PROGRAMS[name]).lower(argument()).compile().runtime_executable().serialize()
    return data


def disjoint(blocks: Sequence[Block]) -> list[int]:
    """Every block has memory of its own."""
    offsets, end = [], 0
    for block in blocks:
        offsets.append(end)
        end += _padded(block)
    return offsets


def upside_down(blocks: Sequence[Block]) -> list[int]:
    """XLA's own offsets, mirrored."""
    height = max((block.begin + _padded(block) for block in blocks), default=0)
    return [height - block.begin - _padded(block) for block in blocks]


def _padded(block: Block) -> int:
    return -(-block.size // ALIGNMENT) * ALIGNMENT
