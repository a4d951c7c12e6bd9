"""Runs JAX programs over the wrapped CPU plugin, each in a process of its own, and compiles small C++ programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xla_stalloc.inject import native, vendors

PLUGIN_SOURCES = Path(__file__).resolve().parents[2] / "plugins" / "pjrt"


@pytest.fixture(scope="session")
def cpu_vendor() -> Path:
    """The CPU plugin, which is in no extra: it declares an older JAX than it works with."""
    try:
        return vendors.find("cpu").path
    except vendors.NoVendorError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def wrapper() -> Path:
    try:
        return native.path()
    except native.NoLibraryError as error:
        pytest.skip(str(error))


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    """Runs a program; returns what it printed last, a line of JSON."""

    def run(program: str, *, code: int = 0, **environment: str) -> Any:
        script = tmp_path / "program.py"
        script.write_text(program)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("XLA_STALLOC", "XLA_FLAGS"))}
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**inherited, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stderr[-4000:]
        lines = done.stdout.splitlines()
        return json.loads(lines[-1]) if lines else done.stderr

    return run


@pytest.fixture
def stalloc(run: Callable[..., Any], cpu_vendor: Path, wrapper: Path) -> Callable[..., Any]:
    """`run` with JAX on the platform ``stalloc``, over the CPU plugin."""

    def run_wrapped(program: str, **environment: str) -> Any:
        return run(program, **{"JAX_PLATFORMS": "stalloc", "XLA_STALLOC_WRAPS": "cpu", **environment})

    return run_wrapped


@pytest.fixture(scope="session")
def compile_cpp(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles C++ sources beside the plugin's headers; skips where there is no compiler for it."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")

    def compile_(*sources: Path, flags: tuple[str, ...] = ()) -> Path:
        out = tmp_path_factory.mktemp("cpp") / sources[0].stem
        command = [compiler, "-std=c++17", "-O1", "-g", "-Wno-invalid-offsetof", f"-I{PLUGIN_SOURCES}"]
        done = subprocess.run(
            [*command, *map(str, sources), *flags, "-o", str(out), "-ldl", "-lpthread"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return out

    return compile_
