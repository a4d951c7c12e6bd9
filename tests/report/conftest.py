"""The programs of `programs.py`, compiled once."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report_programs", Path(__file__).with_name("programs.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session", params=_load().PROGRAMS, ids=lambda program: program.__name__)
def compiled(request: pytest.FixtureRequest) -> Any:
    """Each of the programs."""
    function, arguments = request.param()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some donate what cannot be used
        return function.lower(*arguments).compile()
