"""Results by content: a step that was compiled once for some devices is not compiled again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import tempfile
from pathlib import Path
from typing import Any

SCHEMA = 2
"""Raise it when results mean something else."""
_COMPILERS = ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt")


def folder() -> Path:
    """`XLA_STALLOC_CACHE`, or `xla_stalloc/fit` in the user's cache folder."""
    given = os.environ.get("XLA_STALLOC_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xla_stalloc" / "fit"


def key(module: str, topology: str, options: dict[str, Any]) -> str:
    """Of a lowered module's text: 64 hexadecimal digits. Whatever decides the result is in it."""
    parts = {
        "schema": SCHEMA,
        "module": hashlib.sha256(module.encode()).hexdigest(),
        "topology": topology,
        "options": options,
        "flags": [os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", "")],
        "versions": {name: _version(name) for name in _COMPILERS},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read(key: str) -> dict[str, Any] | None:
    """The result, or None; a damaged one is none."""
    try:
        found = json.loads((folder() / f"{key}.json").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write(key: str, result: dict[str, Any]) -> None:
    """Stores a result. A full disk or a folder that may not be written is no reason to lose what was compiled."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder(), suffix=".tmp", delete=False) as file:
            json.dump(result, file)
        os.replace(file.name, folder() / f"{key}.json")
    except OSError:
        return


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
