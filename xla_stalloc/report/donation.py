"""Which arguments the user donated; a compiled module does not tell of all of them."""

from __future__ import annotations

from typing import Any

from xla_stalloc.hlo import Module, Shape, ShapeIndex

Place = tuple[int, ShapeIndex]
"""Part of an argument: (parameter number, index in its shape)."""


def donated(module: Module, source: Any = None) -> set[Place]:
    """The donated parts of the arguments: those that `module` tells of, and those of a `jax.stages.Compiled`."""
    told = {(parameter, index) for _, parameter, index, _ in module.input_output_alias}
    return told | set(module.buffer_donors) | _by_jax(module, source)


def _by_jax(module: Module, source: Any) -> set[Place]:
    if not hasattr(source, "args_info") or not hasattr(source, "input_shardings"):
        return set()
    import jax

    flags = [info.donated for info in jax.tree.leaves(source.args_info)]
    # An argument that the program does not use is no parameter of the module; it has no sharding either.
    shardings = jax.tree.leaves(source.input_shardings, is_leaf=lambda leaf: leaf is None)
    places = array_places([parameter.shape for parameter in module.entry.parameters])
    if len(flags) != len(shardings):
        return set()
    kept = [flag for flag, sharding in zip(flags, shardings, strict=True) if sharding is not None]
    if len(kept) != len(places):
        return set()  # tokens of effects, say: which parameter is which argument is not known then
    return {place for place, is_donated in zip(places, kept, strict=True) if is_donated}


def replicated(module: Module, source: Any) -> frozenset[int] | None:
    """Numbers of the parameters that a `jax.stages.Compiled` keeps whole on every device; None if nothing tells."""
    if not hasattr(source, "input_shardings"):
        return None
    import jax

    leaves = jax.tree.leaves(source.input_shardings, is_leaf=lambda leaf: leaf is None)
    shardings = [sharding for sharding in leaves if sharding is not None]
    if len(shardings) != len(module.entry.parameters):
        return None
    return frozenset(number for number, sharding in enumerate(shardings) if sharding.is_fully_replicated)


def array_places(shapes: list[Shape]) -> list[Place]:
    """All parts of these shapes that are no tuples."""
    return [
        (number, index) for number, shape in enumerate(shapes) for index, part in shape.subshapes() if not part.is_tuple
    ]
