"""Devices by name that need not be here: `v5p:4x4x4`, `h100:8x8`, `cpu:8`."""

from __future__ import annotations

import difflib
import math
import os
import re
from dataclasses import dataclass
from typing import Any

from xla_stalloc.sharding.chips import GPUS, TPUS
from xla_stalloc.sharding.errors import FitError

_NAME = re.compile(r"(?P<chip>[a-z0-9]+):(?P<shape>[1-9]\d*(x[1-9]\d*)*)(\*(?P<slices>[1-9]\d*))?")
_DEFAULT_GPU_FRACTION = 0.75
_KINDS = {"cpu", *TPUS, *GPUS}

TPU_PACKAGES = "pip install 'xla_stalloc[tpu]'"
CUDA_PACKAGES = "pip install 'xla_stalloc[cuda]'"


@dataclass(frozen=True, slots=True)
class Topology:
    """Devices of one kind and how they hang together.

    Attributes:
        name: what `parse` read.
        platform: `cpu`, `cuda` or `tpu`.
        chip: `cpu`, or a key of `chips.TPUS` or `chips.GPUS`.
        shape: chips along each axis of a TPU's torus; hosts by cards per host for GPUs; the number of CPU devices.
        slices: how many such tori of TPUs are joined by the data centre's network.
    """

    name: str
    platform: str
    chip: str
    shape: tuple[int, ...]
    slices: int = 1

    @property
    def device_count(self) -> int:
        """Devices as JAX counts them: a chip of some TPUs is two."""
        per_chip = TPUS[self.chip].devices_per_chip if self.platform == "tpu" else 1
        return math.prod(self.shape) * self.slices * per_chip

    @property
    def memory_limit(self) -> int | None:
        """Bytes that a program may use on each device; None for CPU devices, which share the machine's memory.

        For GPUs it is the part that JAX takes for itself: `XLA_PYTHON_CLIENT_MEM_FRACTION`, 0.75 by default.
        """
        if self.platform == "tpu":
            return TPUS[self.chip].memory_bytes
        if self.platform == "cuda":
            return int(GPUS[self.chip].memory_bytes * gpu_fraction())
        return None

    def devices(self) -> list[Any]:
        """The devices, for meshes and for compiling; nothing can run on them unless they are CPU devices.

        Makes JAX look for backends; `worker` prepares the process for that.

        Raises:
            FitError: the compiler is not installed, or refuses the topology.
        """
        import jax
        from jax.experimental import topologies

        if self.platform == "cpu":
            return list(jax.devices("cpu")[: self.device_count])
        try:
            if self.platform == "tpu":
                options = {"num_slices": self.slices} if self.slices > 1 else {}
                shape = "x".join(map(str, self.shape))
                found = topologies.get_topology_desc(f"{self.chip}:{shape}", platform="tpu", **options)
            else:
                hosts, cards = self.shape
                config = GPUS[self.chip].target_config()
                found = topologies.get_topology_desc(
                    platform="cuda", topology=f"1x{hosts}x{cards}", target_config=config
                )
        except (RuntimeError, NotImplementedError, ValueError) as error:
            raise FitError(_why_not(self, str(error))) from error
        return list(found.devices)


def parse(name: str) -> Topology:
    """Reads a topology's name.

    `v5e:16x16`, `v5p:4x4x4`, `tpu7x:2x2x1`: a generation of TPUs and its chips; `v5e:16x16*2` is two such slices.
    `h100:8x8`: hosts by cards per host; `h100:8` is one host. `cpu:8`: virtual devices of this machine.

    Raises:
        FitError: it is none of these.
    """
    match = _NAME.fullmatch(name.strip().lower())
    if match is None:
        raise FitError(f"'{name}' is no topology; write a chip and a shape, such as v5p:4x4x4, h100:8x8 or cpu:8")
    chip, shape = match["chip"], tuple(map(int, match["shape"].split("x")))
    slices = int(match["slices"] or 1)
    if chip not in _KINDS:
        near = difflib.get_close_matches(chip, sorted(_KINDS), n=1, cutoff=0.0)[0]
        raise FitError(f"no chip '{chip}'; did you mean '{near}'? There are {', '.join(sorted(_KINDS))}")
    platform = "tpu" if chip in TPUS else "cuda" if chip in GPUS else "cpu"
    if platform == "cuda" and len(shape) == 1:
        shape = (1, *shape)
    axes = {"tpu": (2, 3), "cuda": (2,), "cpu": (1,)}[platform]
    if len(shape) not in axes:
        wanted = {
            "tpu": "chips, such as 4x4 or 2x2x4",
            "cuda": "hosts x cards, such as 8x8",
            "cpu": "a number, such as 8",
        }
        raise FitError(f"'{name}': after '{chip}:' come {wanted[platform]}")
    if slices > 1 and platform != "tpu":
        raise FitError(f"'{name}': only TPUs come in slices; leave out '*{slices}'")
    return Topology(name.strip().lower(), platform, chip, shape, slices)


def gpu_fraction() -> float:
    """The part of a GPU's memory that JAX takes."""
    given = os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "")
    try:
        return float(given) if given else _DEFAULT_GPU_FRACTION
    except ValueError:
        raise FitError(f"XLA_PYTHON_CLIENT_MEM_FRACTION='{given}' is not a number; unset it or give 0.9, say") from None


def _why_not(topology: Topology, error: str) -> str:
    """What to do about an error of `get_topology_desc`."""
    first = (error.splitlines() or ["no message"])[0]
    if "support not installed" in error or "not implemented for" in error or "not found" in error.lower():
        packages = TPU_PACKAGES if topology.platform == "tpu" else CUDA_PACKAGES
        return f"the {topology.platform} compiler is not installed here; {packages} ({first})"
    if "lockfile" in error:
        return (
            f"another process holds libtpu's lock ({first}); wait for it, or remove /tmp/libtpu_lockfile if no process "
            "uses a TPU"
        )
    if "version" in error.lower() and topology.platform == "cuda":
        return f"the CUDA plugin does not fit this JAX: {first}; reinstall with {CUDA_PACKAGES} --upgrade"
    return f"the {topology.platform} compiler refuses the topology {topology.name}: {first}"
