"""Sweeps: every combination, answers, and a file to go on from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xla_stalloc.sharding import sweep
from xla_stalloc.sharding.deviceless import Cancellation
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

BASE = Request(function="train.py:make_step", topology="v5e:2x2", mesh="x=*", arguments={"batch": 8})


def _fit(topology: str, peak: int, flops: int = 1, sent: int = 1, **arguments: Any) -> Fit:
    return Fit(
        topology=topology,
        mesh="x=4",
        arguments=arguments,
        fits=peak <= 100,
        peak_bytes=peak,
        limit_bytes=100,
        flops=flops,
        collective_bytes=sent,
    )


def test_grid_is_every_combination() -> None:
    found = sweep.grid(BASE, {"topology": ["v5e:2x2", "v5e:4x4"], "batch": [8, 16], "remat": ["full"]})
    assert [(r.topology, r.arguments) for r in found] == [
        (topology, {"batch": batch, "remat": "full"}) for topology in ("v5e:2x2", "v5e:4x4") for batch in (8, 16)
    ]


def test_answers() -> None:
    small, tight, large, over = (
        _fit("v5e:2x2", 90, batch=8),
        _fit("v5e:2x2", 95, batch=16),
        _fit("v5e:4x4", 50, batch=16),
        _fit("v5e:2x2", 101, batch=64),
    )
    fits = [large, over, tight, small]
    assert sweep.smallest_topology(fits) is small
    assert sweep.largest_batch(fits) is large
    assert sweep.smallest_topology([over]) is None and sweep.largest_batch([over]) is None


def test_the_front_has_what_nothing_beats_at_the_same_work() -> None:
    remat = _fit("v5e:2x2", 50, flops=4, batch=8, remat="full")
    none = _fit("v5e:2x2", 90, flops=3, batch=8, remat="none")
    worse = _fit("v5e:2x2", 95, flops=4, batch=8, remat="dots")
    over = _fit("v5e:2x2", 120, flops=1, batch=8, remat="offload")
    other_work = _fit("v5e:2x2", 95, flops=8, batch=16)
    assert sweep.pareto([remat, none, worse, over, other_work]) == [remat, none, other_work]


def test_a_stopped_sweep_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []

    def compile_step(request: Request, cancellation: Cancellation) -> Fit:
        compiled.append(request.arguments["batch"])
        if request.arguments["batch"] == 32:
            raise KeyboardInterrupt
        return _fit(request.topology, 10, batch=request.arguments["batch"])

    monkeypatch.setattr(sweep, "compile_step", compile_step)
    results = tmp_path / "results.jsonl"
    requests = sweep.grid(BASE, {"batch": [8, 16, 32]})
    with pytest.raises(KeyboardInterrupt):
        sweep.run(requests, results=results)
    with results.open("a") as file:
        file.write('{"request": {"func')  # killed while it wrote
        file.write("\n")
    del compiled[:]
    found = sweep.run(requests[:2], results=results)
    assert compiled == []
    assert [fit.arguments["batch"] for fit in found] == [8, 16]
    assert json.loads(results.read_text().splitlines()[0])["fit"]["peak_bytes"] == 10
