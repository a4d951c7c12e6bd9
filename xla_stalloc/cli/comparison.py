"""Stock against planned: two executables of one training step, run side by side on the same data."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

Step = Callable[[Any, Any], tuple[Any, jax.Array]]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What running both showed.

    Attributes:
        losses: the loss of every step.
        bit_identical: whether every loss and every array of the state was the same, bit for bit, after every step.
        step_seconds: median wall time of a step of the planned executable.
        stock_step_seconds: the same for stock XLA.
        step_ratio: median over the steps of planned time by stock time.
    """

    losses: list[float]
    bit_identical: bool
    step_seconds: float
    stock_step_seconds: float
    step_ratio: float


def compile_timed(lowered: Any) -> tuple[Any, float]:
    """Compiles a `jax.stages.Lowered`; returns the executable and the seconds it took."""
    started = time.perf_counter()
    compiled = lowered.compile()
    return compiled, time.perf_counter() - started


def compare(
    stock: Step, planned: Step, state: Any, batches: Iterable[Any], after_step: Callable[[], None] = lambda: None
) -> Comparison:
    """Runs both steps over `batches`, in turns so that a change in the machine's load meets both alike.

    Both donate their state, so each starts from its own copy of `state`.
    """
    steps = {"stock": stock, "planned": planned}
    states = {name: jax.tree.map(lambda x: x.copy(), state) for name in steps}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    losses: list[float] = []
    identical = True
    for i, batch in enumerate(batches):
        loss: dict[str, jax.Array] = {}
        # Whoever runs second finds warmer caches: take turns.
        for name in steps if i % 2 else reversed(steps):
            started = time.perf_counter()
            states[name], loss[name] = jax.block_until_ready(steps[name](states[name], batch))
            seconds[name].append(time.perf_counter() - started)
        losses.append(float(loss["planned"]))
        identical = identical and same_bits((states["stock"], loss["stock"]), (states["planned"], loss["planned"]))
        after_step()
    return Comparison(
        losses=losses,
        bit_identical=identical,
        step_seconds=statistics.median(seconds["planned"]),
        stock_step_seconds=statistics.median(seconds["stock"]),
        step_ratio=statistics.median(p / s for p, s in zip(seconds["planned"], seconds["stock"], strict=True)),
    )


def same_bits(left: Any, right: Any) -> bool:
    """Whether two pytrees of arrays are equal in structure, shapes, types and every bit (NaNs and zeros too)."""
    a, b = jax.tree.leaves(left), jax.tree.leaves(right)
    tree_a: Any = jax.tree.structure(left)
    alike = bool(tree_a == jax.tree.structure(right))
    return alike and all(_same_array(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True))


def _same_array(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
