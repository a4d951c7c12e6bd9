"""The C++ parts, compiled into a program of their own and run under sanitizers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PLUGIN_SOURCES = HERE.parents[1] / "plugins" / "pjrt"
PARTS = ("context", "got", "host_memory", "launches", "live_blocks", "programs", "recorder", "state", "vendor")
SANITIZERS = {
    "none": (),
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_requests_of_many_threads(sanitizer: str, compile_cpp: Callable[..., Path], tmp_path: Path) -> None:
    flags = SANITIZERS[sanitizer]
    probe = tmp_path / "probe.cc"
    probe.write_text("int main() {}")
    try:
        usable = subprocess.run([compile_cpp(probe, flags=flags)], capture_output=True).returncode == 0
    except AssertionError:
        usable = False
    if not usable:
        pytest.skip(f"the compiler has no working {sanitizer} sanitizer here")
    vendor = compile_cpp(HERE / "fake_host_vendor.cc", flags=("-shared", "-fPIC", *flags))
    stress = compile_cpp(HERE / "stress.cc", *(PLUGIN_SOURCES / f"{part}.cc" for part in PARTS), flags=flags)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run([stress, vendor], capture_output=True, text=True, env=environment, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert done.stdout == "done\n"
