"""Versions of what takes part, for reports."""

from __future__ import annotations

import importlib.metadata
import platform

PACKAGES = ("xla_stalloc", "jax", "jaxlib", "flax", "optax", "numpy", "protobuf")


def versions() -> dict[str, str]:
    """Package name -> version, Python's among them; `absent` where a package is not installed."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
