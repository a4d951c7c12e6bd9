"""Device memory of XLA:GPU, over a driver that is not there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLUGIN_SOURCES = HERE.parents[1] / "plugins" / "pjrt"
PARTS = ("context", "cuda_memory", "got", "launches", "live_blocks", "programs", "state", "vendor")


def test_requests_for_device_memory_are_counted_and_served(compile_cpp: Callable[..., Path]) -> None:
    sanitized = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    vendor = compile_cpp(HERE / "fake_cuda_vendor.cc", flags=("-shared", "-fPIC"))
    driver = compile_cpp(HERE / "fake_driver.cc", flags=("-shared", "-fPIC"))
    program = HERE / "cuda_requests.cc"
    sources = [program, *(PLUGIN_SOURCES / f"{part}.cc" for part in PARTS)]
    try:
        binary = compile_cpp(*sources, flags=sanitized)
    except AssertionError:  # no sanitizers here
        binary = compile_cpp(*sources)
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([binary, vendor, driver], capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
