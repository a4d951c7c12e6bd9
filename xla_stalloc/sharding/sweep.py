"""Many variants of one step: which fit, which is the smallest, what memory costs in arithmetic and communication."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from xla_stalloc.sharding import topology
from xla_stalloc.sharding.deviceless import Cancellation, compile_step
from xla_stalloc.sharding.errors import FitError
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

_OWN_AXES = ("topology", "mesh")
_WORK = ("batch", "seq")  # arguments that change how much a step achieves


def grid(base: Request, axes: Mapping[str, Sequence[Any]]) -> list[Request]:
    """Every combination of the axes' values: `topology`, `mesh`, or arguments of the function by name."""
    found = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        own = {name: chosen.pop(name) for name in _OWN_AXES if name in chosen}
        found.append(
            dataclasses.replace(
                base,
                topology=own.get("topology", base.topology),
                mesh=own.get("mesh", base.mesh),
                arguments={**base.arguments, **chosen},
            )
        )
    return found


def run(
    requests: Sequence[Request],
    workers: int = 1,
    results: Path | None = None,
    on_done: Callable[[Fit], None] = lambda fit: None,
) -> list[Fit]:
    """Compiles all requests, `workers` at a time; results in the order of the requests.

    A variant that cannot work, a mesh that does not divide the batch say, is a result with a reason.

    Args:
        results: a file with one line of JSON per result; what is in it already is not compiled again, and each new
            result is appended as soon as it is there, so that a sweep that was stopped goes on where it was.
        on_done: is called for each result when it is there, in any order.
    """
    known = dict(_read(results)) if results is not None else {}
    cancellation = Cancellation()
    found: dict[str, Fit] = {}
    with ThreadPoolExecutor(max_workers=workers) as pool:
        waiting = {}
        for request in requests:
            if (name := request.to_json()) in known:
                found[name] = known[name]
                on_done(known[name])
            else:
                waiting[pool.submit(_attempt, request, cancellation)] = request
        try:
            for future in as_completed(waiting):
                request, fit = waiting[future], future.result()
                found[request.to_json()] = fit
                if results is not None:
                    _append(results, request, fit)
                on_done(fit)
        except BaseException:
            for future in waiting:
                future.cancel()
            cancellation.cancel()
            raise
    return [found[request.to_json()] for request in requests]


def smallest_topology(fits: Iterable[Fit]) -> Fit | None:
    """Of all that fit, the one with the fewest devices; among equals, with the most to spare."""
    return min(
        (fit for fit in fits if fit.fits),
        key=lambda fit: (topology.parse(fit.topology).device_count, -(fit.spare_bytes or 0)),
        default=None,
    )


def largest_batch(fits: Iterable[Fit]) -> Fit | None:
    """Of all that fit, the one with the largest argument `batch`; among equals, with the most to spare."""
    return max(
        (fit for fit in fits if fit.fits and "batch" in fit.arguments),
        key=lambda fit: (fit.arguments["batch"], fit.spare_bytes or 0),
        default=None,
    )


def pareto(fits: Iterable[Fit]) -> list[Fit]:
    """Those that may fit and that none of the same work beats in memory, arithmetic and bytes sent, all per device."""
    judged = [fit for fit in fits if fit.fits is not False and _costs(fit) is not None]
    return [fit for fit in judged if not any(_beats(other, fit) for other in judged)]


def _beats(other: Fit, fit: Fit) -> bool:
    a, b = _costs(other), _costs(fit)
    assert a is not None and b is not None
    same_work = other.topology == fit.topology and all(
        other.arguments.get(name) == fit.arguments.get(name) for name in _WORK
    )
    return same_work and a != b and all(x <= y for x, y in zip(a, b, strict=True))


def _costs(fit: Fit) -> tuple[int, int, int] | None:
    memory = fit.peak_bytes or fit.estimate_bytes
    if memory is None or fit.flops is None or fit.collective_bytes is None:
        return None
    return memory, fit.flops, fit.collective_bytes


def _attempt(request: Request, cancellation: Cancellation) -> Fit:
    try:
        return compile_step(request, cancellation=cancellation)
    except FitError as error:
        return Fit(topology=request.topology, mesh=request.mesh, arguments=request.arguments, reason=str(error))


def _read(results: Path) -> Iterator[tuple[str, Fit]]:
    if not results.exists():
        return
    for line in results.read_text().splitlines():
        try:
            entry = json.loads(line)
            yield Request(**entry["request"]).to_json(), Fit.from_dict(entry["fit"])
        except (ValueError, KeyError, TypeError):
            continue  # the sweep was killed while it wrote this line


def _append(results: Path, request: Request, fit: Fit) -> None:
    line = json.dumps({"request": json.loads(request.to_json()), "fit": fit.to_dict()})
    try:
        with results.open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FitError(f"{results} cannot be written: {error.strerror}; give another --results") from error
