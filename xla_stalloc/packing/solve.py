"""A packing as low as time allows: best fit at once, first fit in many orders, an exact search of small problems."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xla_stalloc._core import Verdict
from xla_stalloc.packing.best_fit import HeapItem, best_fit
from xla_stalloc.packing.first_fit import DEFAULT_WORK, first_fit
from xla_stalloc.packing.instance import Instance
from xla_stalloc.packing.tight import MOST_ITEMS, TightPacker, max_load
from xla_stalloc.packing.verify import verify_placement


@dataclass(frozen=True)
class Placement:
    """Where each buffer goes.

    Attributes:
        offsets: int64[n], bytes.
        height: bytes.
        lower_bound: bytes that no packing can be below.
        solver: what found it: "best fit", "first fit" or "exact search".
        seconds: after which it was found.
    """

    offsets: NDArray[np.int64]
    height: int
    lower_bound: int
    solver: str
    seconds: float


def solve(instance: Instance, capacity: int | None = None, seconds: float = 3.0, seed: int = 0) -> Placement:
    """The lowest packing found in the time; stops at the capacity, or at the lower bound.

    Every packing is checked by the verifier before it is returned. Ctrl-C ends the search with the best so far.

    Raises:
        PlacementError: a packing is wrong. It should not happen.
    """
    started = time.perf_counter()
    found = _best_fit(instance, started)
    target = found.lower_bound if capacity is None else max(capacity, found.lower_bound)
    exact = len(instance.size) <= MOST_ITEMS and _one_alignment(instance)
    if found.height > target:
        found = _first_fit(instance, found, target, started, seed, DEFAULT_WORK // 10 if exact else DEFAULT_WORK)
    if found.height > target and exact:
        found = _exact_search(instance, found, capacity, started, seconds, seed)
    _verify(instance, found)
    return found


def _best_fit(instance: Instance, started: float) -> Placement:
    alignment = math.lcm(*instance.alignment.tolist())
    packed = best_fit(_items(instance), alignment)
    offsets = np.array(packed.offsets, np.int64)
    height = int((offsets + instance.size).max(initial=0))
    return Placement(
        offsets,
        height,
        max_load(instance.lower, instance.upper, instance.size),
        "best fit",
        time.perf_counter() - started,
    )


def _first_fit(instance: Instance, best: Placement, target: int, started: float, seed: int, work: int) -> Placement:
    packed = first_fit(_items(instance), math.lcm(*instance.alignment.tolist()), target, work, seed)
    if packed is None or packed.height >= best.height:
        return best
    offsets = np.array(packed.offsets, np.int64)
    return Placement(offsets, packed.height, best.lower_bound, "first fit", time.perf_counter() - started)


def _exact_search(
    instance: Instance, start: Placement, capacity: int | None, started: float, seconds: float, seed: int
) -> Placement:
    packer = TightPacker(instance.lower, instance.upper, instance.size, instance.alignment, seed)
    left = seconds - (time.perf_counter() - started)
    best = start
    if capacity is not None:
        fit = packer.fit(capacity, seconds=left)
        if fit.offsets is not None:
            return _better(best, instance, fit.offsets, packer.lower_bound, started)
        if fit.verdict is Verdict.INFEASIBLE:
            return Placement(best.offsets, best.height, capacity + 1, best.solver, best.seconds)
        return best
    try:
        for lower in packer.descend(seconds=left):
            best = _better(best, instance, lower.offsets, lower.lower_bound, started)
    except KeyboardInterrupt:
        pass
    return best


def _better(
    best: Placement, instance: Instance, offsets: NDArray[np.int64], lower_bound: int, started: float
) -> Placement:
    height = int((offsets + instance.size).max(initial=0))
    bound = max(best.lower_bound, lower_bound)
    if height >= best.height:
        return Placement(best.offsets, best.height, bound, best.solver, best.seconds)
    return Placement(offsets, height, bound, "exact search", time.perf_counter() - started)


def _one_alignment(instance: Instance) -> bool:
    return bool((instance.alignment.max(initial=1) % instance.alignment == 0).all())


def _items(instance: Instance) -> list[HeapItem]:
    columns = zip(instance.lower.tolist(), instance.upper.tolist(), instance.size.tolist(), strict=True)
    return [HeapItem(size, ((lower, upper - 1),), number) for number, (lower, upper, size) in enumerate(columns)]


def _verify(instance: Instance, placement: Placement) -> None:
    """Each buffer's own alignment is checked here; the verifier knows one for all."""
    if (placement.offsets % instance.alignment).any():
        number = int((placement.offsets % instance.alignment != 0).argmax())
        raise AssertionError(f"buffer {instance.ids[number]!r} is not aligned")
    verify_placement(_items(instance), placement.offsets.tolist(), placement.height, 1)
