"""The estimate from shardings: exact where it can be counted by hand, and near the compiler's truth."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from xla_stalloc.sharding.estimate import Estimate, estimate

_MB = 2**20


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))


def _spec(mesh: Mesh, shape: tuple[int, ...], *axes: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*axes)))


def _of(function: Any, *arguments: Any, **options: Any) -> Estimate:
    return estimate(jax.jit(function, **options).lower(*arguments))


def test_a_gathered_weight(mesh: Mesh) -> None:
    x, w = _spec(mesh, (1024, 1024), "a"), _spec(mesh, (1024, 1024), "a")
    found = _of(lambda x, w: jnp.sin(x @ w), x, w)
    assert found.argument_bytes == 2 * _MB  # a quarter of 4 MB each
    assert found.output_bytes == _MB
    assert found.temp_bytes == 4 * _MB  # all of the weight; the product becomes the output in place
    assert found.collective_bytes == 3 * _MB  # to each of three others
    assert found.flops == 2 * 256 * 1024 * 1024


def test_a_product_over_a_split_axis_is_summed_around_a_ring(mesh: Mesh) -> None:
    found = _of(lambda x, w: x @ w, _spec(mesh, (512, 1024), None, "b"), _spec(mesh, (1024, 512), "b"))
    assert found.collective_bytes == _MB  # 2 * 1/2 of the product
    assert found.flops == 2 * 512 * 512 * 512


def test_loops_turn_in_place_and_count_each_turn(mesh: Mesh) -> None:
    def loop(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, length=7)[0]

    x, w = _spec(mesh, (1024, 1024), "a"), _spec(mesh, (1024, 1024))
    found = _of(loop, x, w, donate_argnums=0)
    assert found.flops == 7 * 2 * 256 * 1024 * 1024
    assert found.alias_bytes == _MB
    assert found.temp_bytes <= 3 * _MB  # what it carries, and the next one


def test_elementwise_chains_take_no_memory(mesh: Mesh) -> None:
    found = _of(lambda x: jnp.sin(jnp.exp(x) + 1) * 2 + x, _spec(mesh, (1024, 1024), "a"))
    assert found.temp_bytes == 0


def test_calls_are_followed(mesh: Mesh) -> None:
    inner = jax.jit(lambda x, w: x @ w)
    found = _of(lambda x, w: inner(inner(x, w), w), _spec(mesh, (1024, 1024), "a"), _spec(mesh, (1024, 1024)))
    assert found.flops == 2 * 2 * 256 * 1024 * 1024


def test_arguments_outputs_and_aliases_are_the_compilers(mesh: Mesh) -> None:
    def step(state: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        gradient = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(state["w"])
        return {"w": state["w"] - gradient, "count": state["count"] + 1}, gradient.sum()

    state = {"w": _spec(mesh, (1024, 512), "a", "b"), "count": _spec(mesh, ())}
    shardings = (jax.tree.map(lambda s: s.sharding, state), None)
    lowered = jax.jit(step, donate_argnums=0, out_shardings=shardings).lower(state, _spec(mesh, (256, 1024), "a"))
    found, truth = estimate(lowered), lowered.compile().memory_analysis()
    assert found.argument_bytes == truth.argument_size_in_bytes
    assert found.alias_bytes == truth.alias_size_in_bytes
    assert 0 <= truth.output_size_in_bytes - found.output_bytes <= 64  # the table of pointers


def test_the_lowered_step_can_still_be_compiled(mesh: Mesh) -> None:
    lowered = jax.jit(lambda x: x @ x).lower(_spec(mesh, (256, 256), "a"))
    before = lowered.as_text()
    estimate(lowered)
    assert lowered.as_text() == before
