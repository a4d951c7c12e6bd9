"""Lets the tests of this folder import their helpers, and leaves nothing enabled behind them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@pytest.fixture(autouse=True)
def _nothing_enabled() -> Iterator[None]:
    from xla_stalloc.inject import switch

    yield
    switch.disable()


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Runs a program in a process of its own; returns what it printed, standard error after standard output."""

    def run(program: str, *arguments: str, **environment: str) -> str:
        script = tmp_path / "program.py"
        script.write_text(program)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("XLA_STALLOC")}
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            env={**inherited, "PYTHONPATH": str(HERE), "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run
