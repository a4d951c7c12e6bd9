"""The PJRT plugins that can be wrapped: ``cpu``, ``cuda``, ``tpu``, or the path of any other."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class NoVendorError(RuntimeError):
    """There is no plugin to wrap under the name that was asked for."""


@dataclass(frozen=True)
class Vendor:
    """A PJRT plugin.

    Attributes:
        name: ``cpu``, ``cuda``, ``tpu``; ``""`` for one that was named by its path.
        path: Its shared library.
    """

    name: str
    path: Path


def find(wanted: str | None = None) -> Vendor:
    """The plugin that ``XLA_STALLOC_WRAPS`` names; by default that of the accelerator that is there, else of the CPU.

    Raises:
        NoVendorError: No such plugin is installed; says what to install.
    """
    wanted = (os.environ.get("XLA_STALLOC_WRAPS", "") if wanted is None else wanted).strip()
    if not wanted:
        wanted = _present_accelerator() or "cpu"
    if wanted in _FINDERS:
        path = _FINDERS[wanted]()
        if path is None:
            raise NoVendorError(f"no PJRT plugin for {wanted!r} is installed: {_REMEDIES[wanted]}")
        return Vendor(wanted, path)
    path = Path(wanted)
    if not path.is_file():
        names = ", ".join(_FINDERS)
        raise NoVendorError(f"XLA_STALLOC_WRAPS={wanted}: neither one of {names}, nor a file")
    return Vendor("", path.resolve())


def _present_accelerator() -> str:
    """The accelerator whose device files and plugin are both there; ``""`` if none is."""
    if any(Path("/dev").glob("nvidia[0-9]*")) and _cuda() is not None:
        return "cuda"
    if (any(Path("/dev").glob("accel[0-9]*")) or any(Path("/dev/vfio").glob("[0-9]*"))) and _tpu() is not None:
        return "tpu"
    return ""


def _cpu() -> Path | None:
    # jaxlib has its own CPU client built in, and brings no plugin of it.
    return _library_in("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so")


def _cuda() -> Path | None:
    for package in ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"):
        if found := _library_in(package, "xla_cuda_plugin.so"):
            return found
    return None


def _tpu() -> Path | None:
    # The same variable by which JAX itself finds another libtpu.
    if named := os.environ.get("TPU_LIBRARY_PATH"):
        return Path(named) if Path(named).is_file() else None
    return _library_in("libtpu", "libtpu.so")


def _library_in(package: str, library: str) -> Path | None:
    """The file `library` inside of a package, which is not imported for it."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / library).is_file():
            return path
    return None


_FINDERS: dict[str, Callable[[], Path | None]] = {"cpu": _cpu, "cuda": _cuda, "tpu": _tpu}

_REMEDIES = {
    "cpu": "pip install --no-deps lammps-jax-pjrt-cpu (a CPU plugin; jaxlib brings none). Without a plugin, attach to "
    "jaxlib's own client: xla_stalloc.inject.attach",
    "cuda": "pip install jax-cuda12-pjrt, of JAX's own version",
    "tpu": "pip install libtpu",
}
