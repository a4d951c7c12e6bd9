"""What a training loop needs to know about a model, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .errors import ModelError
from .partition import Rules, partition

State = Any
"""A pytree of arrays: parameters and optimizer state."""
Batch = tuple[np.ndarray, np.ndarray]
"""Inputs and labels, on the host, batch axis first."""


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """A training step with its data and its layout on a mesh.

    Attributes:
        name: the registry's name, such as `gpt-scan-remat`.
        sizes: what the model was built with, by name (`{"layers": 4, ...}`).
        init: `init(key) -> state`.
        step: `step(state, batch) -> (state, loss)`; pure, made for `donate_argnums=0`; the loss is a float32 scalar.
        batch: `batch(i) -> batch`, the i-th batch of a synthetic set that the model can learn; the same on every host.
        rules: which parameter axes are split over the mesh axis `model`.
        divisible: mesh axis -> the sizes, by name, that it must divide.
    """

    name: str
    sizes: Mapping[str, int]
    init: Callable[[jax.Array], State]
    step: Callable[[State, Batch], tuple[State, jax.Array]]
    batch: Callable[[int], Batch]
    rules: Rules
    divisible: Mapping[str, Mapping[str, int]]

    @functools.cached_property
    def state_shapes(self) -> State:
        """The state as a pytree of `jax.ShapeDtypeStruct`, without computing anything."""
        return jax.eval_shape(self.init, jax.random.key(0))

    def check_mesh(self, shape: Mapping[str, int]) -> None:
        """Raises ModelError unless the mesh axes (`{"data": 4, "model": 2}`) divide what they split."""
        for axis, sizes in self.divisible.items():
            for what, size in sizes.items():
                if size % shape[axis]:
                    raise ModelError(
                        f"{self.name}: the mesh axis '{axis}' of {shape[axis]} does not divide {what}={size}; "
                        f"choose a mesh or a {what} so that it does"
                    )

    def state_shardings(self, mesh: Mesh) -> State:
        """A `NamedSharding` for every array of the state: big matrices over `model`, the rest replicated."""
        return jax.tree.map(lambda spec: NamedSharding(mesh, spec), partition(self.state_shapes, self.rules))

    def batch_shardings(self, mesh: Mesh) -> tuple[NamedSharding, NamedSharding]:
        """Inputs and labels are split over `data` along their first axis."""
        return (NamedSharding(mesh, PartitionSpec("data")),) * 2

    def arguments(self, mesh: Mesh) -> tuple[State, Any]:
        """`(state, batch)` as sharded `jax.ShapeDtypeStruct`s: what `jit(step).lower` takes."""

        def abstract(x: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

        state = jax.tree.map(abstract, self.state_shapes, self.state_shardings(mesh))
        return state, jax.tree.map(abstract, self.batch(0), self.batch_shardings(mesh))

    def jit(self, mesh: Mesh, jit: Callable[..., Any] = jax.jit, **options: Any) -> Any:
        """The step under `jit` (`jax.jit`, `stalloc.jit`, ...): state donated, and laid out alike before and after."""
        self.check_mesh(mesh.shape)
        state, batch = self.state_shardings(mesh), self.batch_shardings(mesh)
        replicated = NamedSharding(mesh, PartitionSpec())
        return jit(
            self.step, donate_argnums=0, in_shardings=(state, batch), out_shardings=(state, replicated), **options
        )

    def start(self, mesh: Mesh, seed: int = 0) -> State:
        """The first state, created in place on the devices of the mesh."""
        self.check_mesh(mesh.shape)
        return jax.jit(self.init, out_shardings=self.state_shardings(mesh))(jax.random.key(seed))
