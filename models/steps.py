"""Models as steps to be compiled for any mesh: the zoo's side of `xla-stalloc fit`."""

from __future__ import annotations

from typing import Any

from jax.sharding import Mesh

from . import llama, registry
from .errors import ModelError


def step_names() -> tuple[str, ...]:
    """Every name that `make_step` takes."""
    return (*llama.SIZES, *registry.names())


def make_step(mesh: Mesh, *, model: str, **sizes: Any) -> tuple[Any, tuple[Any, ...]]:
    """The jitted step of a model, and its abstract arguments with their shardings on the mesh.

    Llamas take the mesh axes `fsdp` and `tp`, and also `remat`, `accumulation` and `optimizer`; the other models take
    `data` and `model`.

    Raises:
        ModelError: no such model, size or mesh.
    """
    if model in llama.SIZES:
        known = llama.Sizes.__dataclass_fields__
        for key in sizes:
            if key not in known:
                raise ModelError(f"{model} has no size '{key}'; it has {', '.join(known)}")
        return llama.make_step(mesh, llama.SIZES[model](**sizes))
    spec = registry.get(model, **sizes)
    if unknown := set(mesh.axis_names) - {"data", "model"}:
        raise ModelError(f"{model} is split over the mesh axes data and model, not {', '.join(sorted(unknown))}")
    if missing := {"data", "model"} - set(mesh.axis_names):
        raise ModelError(
            f"{model} wants a mesh with data and model; add {', '.join(f'{m}=1' for m in sorted(missing))}"
        )
    return spec.jit(mesh), spec.arguments(mesh)
