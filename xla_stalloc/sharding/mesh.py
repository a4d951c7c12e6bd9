"""Meshes as text: `fsdp=16,tp=4`, and `fsdp=*,tp=4` for all devices that are left."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from xla_stalloc.sharding.errors import FitError

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from xla_stalloc.sharding.topology import Topology

_AXIS = re.compile(r"([A-Za-z_]\w*)=([1-9]\d*|\*)")


def parse(text: str, device_count: int) -> dict[str, int]:
    """Axis name -> size, in the order of the text.

    Raises:
        FitError: it is not such a text, or the axes do not multiply to `device_count`.
    """
    axes: dict[str, int] = {}
    rest = ""
    for part in text.replace(" ", "").split(","):
        match = _AXIS.fullmatch(part)
        if match is None or match[1] in axes or (match[2] == "*" and rest):
            raise FitError(
                f"'{text}' is no mesh; write each axis once, one of them may be *: fsdp=16,tp=4 or fsdp=*,tp=4"
            )
        if match[2] == "*":
            rest = match[1]
        axes[match[1]] = 1 if match[2] == "*" else int(match[2])
    size = math.prod(axes.values())
    if rest and device_count % size == 0:
        axes[rest] = device_count // size
    elif size != device_count:
        raise FitError(f"the mesh {text} is of {size} devices, and the topology has {device_count}; they must be equal")
    return axes


def text(axes: dict[str, int]) -> str:
    """The inverse of `parse`."""
    return ",".join(f"{name}={size}" for name, size in axes.items())


def make(axes: dict[str, int], topology: Topology) -> Mesh:
    """A mesh over all devices of a topology, laid out along the links that TPUs have.

    Raises:
        FitError: the compiler is not installed, or refuses the topology.
    """
    from jax.experimental import mesh_utils
    from jax.sharding import Mesh

    devices = topology.devices()
    shape = tuple(axes.values())
    if topology.platform == "tpu" and topology.slices == 1:
        try:
            laid_out = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
        except (NotImplementedError, ValueError, AssertionError):
            laid_out = np.array(devices).reshape(shape)  # memory does not depend on who is whose neighbour
    else:
        laid_out = np.array(devices).reshape(shape)
    return Mesh(laid_out, tuple(axes))
