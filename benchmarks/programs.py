"""The programs that are measured: the project's own models, and those of a folder.

A folder of programs holds `programs.py` (`NAMES`: name -> function that returns `init, step, batch`; functions called
`sharded_*` that return `init, step, state, batch` with shardings) and `reports.py` (`CASES`: name -> function that
returns a jitted function, its arguments and a remark). Either file may be missing.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from xla_stalloc import models

MESHES = {"1x1": (1, 1), "4x2": (4, 2)}
SHARDED_DEVICES = 8


@dataclasses.dataclass(frozen=True)
class Program:
    """One program, ready to be compiled and run.

    Attributes:
        lower: returns a fresh `jax.stages.Lowered`; whether it is planned depends on `stalloc.enable()`.
        start: returns the first state.
        batch: `batch(i)` returns the i-th input.
        bind: makes `step(state, batch) -> (state, loss)` of the compiled program.
    """

    lower: Callable[[], Any]
    start: Callable[[], Any]
    batch: Callable[[int], Any]
    bind: Callable[[Any], Callable[[Any, Any], Any]] = lambda compiled: compiled


def names(folder: Path | None) -> list[str]:
    """Every program, those of the folder first; does not touch the devices."""
    own = [f"{model}@{mesh}" for mesh in MESHES for model in models.names()]
    if folder is None:
        return own
    found = []
    if (folder / "programs.py").exists():
        found += [*_module(folder, "programs").NAMES, *_sharded(folder)]
    if (folder / "reports.py").exists():
        # A program's name comes first: both files may know it.
        found += [name for name in _module(folder, "reports").CASES if name not in found]
    return found + own


def devices(name: str, folder: Path | None) -> int:
    """How many (virtual) devices a program wants."""
    if "@" in name:
        return int(np.prod(MESHES[name.rpartition("@")[2]]))
    return SHARDED_DEVICES if folder is not None and name in _sharded(folder) else 1


def load(name: str, folder: Path | None) -> Program:
    """Builds a program by name."""
    if "@" in name:
        return _model(name)
    assert folder is not None, f"{name} is no model; say with --programs where it is"
    if name in _sharded(folder):
        return _training(*getattr(_module(folder, "programs"), name)())
    if (folder / "programs.py").exists() and name in (steps := _module(folder, "programs").NAMES):
        init, step, batch = steps[name]()
        return _training(init, step, jax.eval_shape(init, jax.random.key(0)), batch)
    return _function(*_module(folder, "reports").CASES[name]()[:2])


def _model(name: str) -> Program:
    model, _, mesh_name = name.rpartition("@")
    spec = models.get(model)
    mesh = models.make_mesh(*MESHES[mesh_name])
    return Program(
        lower=lambda: spec.jit(mesh).lower(*spec.arguments(mesh)),
        start=lambda: spec.start(mesh),
        batch=lambda i: jax.device_put(spec.batch(i), spec.batch_shardings(mesh)),
    )


def _training(init: Any, step: Any, state: Any, batch: Any) -> Program:
    shardings = jax.tree.map(lambda x: x.sharding, state)

    def bind(compiled: Any) -> Callable[[Any, Any], Any]:
        def run(state: Any, batch: Any) -> Any:
            # The compiler chose the layout of the outputs; moving them is free where it chose that of the inputs.
            return compiled(jax.device_put(state, shardings), batch)

        return run

    return Program(
        lower=lambda: jax.jit(step, donate_argnums=0).lower(state, batch),
        start=lambda: jax.device_put(jax.jit(init)(jax.random.key(0)), shardings),
        batch=lambda i: random_like(batch, i),
        bind=bind,
    )


def _function(function: Any, arguments: Any) -> Program:
    def bind(compiled: Any) -> Callable[[Any, Any], Any]:
        def run(_: Any, batch: Any) -> Any:
            # A copy, since the function may donate its arguments, and both executables get the same ones. All outputs
            # are "state", so that every bit of them is compared.
            return compiled(*jax.tree.map(lambda x: x.copy(), batch)), np.float32(0)

        return run

    return Program(
        lower=lambda: function.lower(*arguments), start=lambda: (), batch=lambda i: random_like(arguments, i), bind=bind
    )


def random_like(tree: Any, seed: int) -> Any:
    """Arrays like the ShapeDtypeStructs of `tree`; integers stay below 10, so that every model knows them as labels."""
    random = np.random.default_rng(seed)

    def make(x: Any) -> jax.Array:
        integers = np.issubdtype(x.dtype, np.integer)
        values = random.integers(10, size=x.shape) if integers else random.normal(size=x.shape)
        return jax.device_put(values.astype(x.dtype), x.sharding)

    return jax.tree.map(make, tree)


def _sharded(folder: Path) -> list[str]:
    """The builders of `programs.py` that are for many devices: functions called sharded_*."""
    path = folder / "programs.py"
    if not path.exists():
        return []
    tree = ast.parse(path.read_text(), str(path))
    return [f.name for f in tree.body if isinstance(f, ast.FunctionDef) and f.name.startswith("sharded_")]


def _module(folder: Path, name: str) -> Any:
    """Imports `folder/name.py`, once."""
    key = f"benchmark_programs.{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]
