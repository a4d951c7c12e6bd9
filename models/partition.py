"""From the name of a parameter to its place on the mesh.

One table of rules serves Linen, NNX and the optimizer's moments alike, because all of them keep a parameter's name as
the end of its path. The layouts follow Megatron-LM (Shoeybi et al., 2019, arXiv:1909.08053): the first matrix of a pair
is split by columns and the second by rows, so that a layer needs one all-reduce per pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from .errors import ModelError

Rules = Mapping[str, tuple[str | None, ...]]
"""`{"up/kernel": (None, "model")}`: the end of a parameter's path -> the mesh axis of each of its last dimensions."""

AXES = ("data", "model")


def make_mesh(data: int, model: int) -> Mesh:
    """A `data` x `model` mesh over the first devices of the default backend; ModelError if there are too few."""
    devices = jax.devices()
    if data * model > len(devices):
        raise ModelError(
            f"a mesh of {data}x{model} wants {data * model} devices and the {devices[0].platform} backend has "
            f"{len(devices)}; choose a smaller mesh, or set JAX_PLATFORMS=cpu to use virtual devices"
        )
    return Mesh(np.array(devices[: data * model]).reshape(data, model), AXES)


def partition(tree: Any, rules: Rules) -> Any:
    """A PartitionSpec for every leaf of `tree`; leaves that no rule names are replicated."""
    return jax.tree_util.tree_map_with_path(lambda path, leaf: _spec(_name(path), len(leaf.shape), rules), tree)


def _spec(name: str, rank: int, rules: Rules) -> PartitionSpec:
    for end, axes in rules.items():
        if f"/{name}".endswith(f"/{end}"):
            # A scan over layers stacks their parameters: the new first dimension is not split.
            return PartitionSpec(*(None,) * (rank - len(axes)), *axes)
    return PartitionSpec()


def _name(path: tuple[Any, ...]) -> str:
    keys = (str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", "")))) for key in path)
    # An nnx.Variable holds its array one level deeper than a Linen parameter does.
    return "/".join(key for key in keys if key != "value")
