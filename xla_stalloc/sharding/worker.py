"""The process that compiles: a request on stdin, events on stdout, one JSON object a line.

Events: `{"event": "progress", "what": ...}`, `{"event": "estimate", "fit": ...}` before the compiler starts,
`{"event": "result", "fit": ...}` after it, and `{"event": "error", "message": ...}`. It is a process of its own because
a compiler's flags and plugins are chosen once per process, because nothing else stops a compiler, and because its
memory comes back.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import time
from typing import Any, TextIO

from xla_stalloc.inject import ledger, switch
from xla_stalloc.plan.options import PLANNER_VERSION
from xla_stalloc.report.oom import parse as oom
from xla_stalloc.sharding import cache, mesh, program, topology
from xla_stalloc.sharding.errors import FitError
from xla_stalloc.sharding.estimate import Estimate, estimate
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request
from xla_stalloc.sharding.topology import Topology


def main() -> None:
    """Serves one request."""
    # Libraries and the user's script print where they like; events get stdout for themselves.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    request = Request.from_json(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        for event in _serve(request):
            _send(events, event)
    except FitError as error:
        _send(events, {"event": "error", "message": str(error)})
    # Compilers leave threads behind that may crash at exit; everything has been said.
    os._exit(0)


def prepare(found: Topology) -> None:
    """Readies the environment of this process; call it before JAX looks for backends."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_STALLOC"] = "off"
    os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # several compilers at once: no lockfile is taken
    os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # do not ask the network what machine this is
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    if found.platform == "cpu":
        count = f"--xla_force_host_platform_device_count={found.device_count}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {count}".strip()


def _serve(request: Request) -> Any:
    found = topology.parse(request.topology)
    axes = mesh.parse(request.mesh, found.device_count)
    prepare(found)
    yield _progress(f"loading the {found.platform} compiler")
    made = mesh.make(axes, found)
    yield _progress(f"tracing {request.function}")
    lowered = program.lower(program.load(request.function), made, request.arguments)
    fit = Fit(topology=found.name, mesh=mesh.text(axes), arguments=request.arguments, limit_bytes=found.memory_limit)
    started = time.perf_counter()
    guess: Estimate | None = None
    try:
        guess = estimate(lowered, found.platform)
    except Exception as error:  # XLA's partitioner and its dialects are not ours; the compiler can tell without it
        if not request.compile:
            raise FitError(f"there is no estimate for this step: {error}; leave out --estimate") from error
        yield _progress("there is no estimate for this step")
    else:
        fit = _estimated(fit, guess, time.perf_counter() - started)
        yield {"event": "estimate", "fit": fit.to_dict()}
    if not request.compile:
        yield {"event": "result", "fit": dataclasses.replace(fit, reason="estimated; nothing was compiled").to_dict()}
        return
    yield _progress(f"compiling for {found.name}")
    key = cache.key(lowered.as_text(), found.name, request.compiler_options | _planning(request.mode))
    known = cache.read(key)
    if known is None:
        compiled = _compile(lowered, request.compiler_options, request.mode)
        cache.write(key, compiled)
    yield {"event": "result", "fit": _judge(fit, guess, known or compiled, known is not None).to_dict()}


def _estimated(fit: Fit, guess: Estimate, seconds: float) -> Fit:
    return dataclasses.replace(
        fit,
        fits=None if fit.limit_bytes is None else guess.peak_bytes <= fit.limit_bytes,
        argument_bytes=guess.argument_bytes,
        output_bytes=guess.output_bytes,
        alias_bytes=guess.alias_bytes,
        estimate_bytes=guess.peak_bytes,
        flops=guess.flops,
        collective_bytes=guess.collective_bytes,
        estimate_seconds=seconds,
    )


def _planning(mode: str) -> dict[str, Any]:
    """What planning adds to the key of a result."""
    return {} if mode == "off" else {"xla_stalloc": f"{mode} {PLANNER_VERSION}"}


def _compile(lowered: Any, options: dict[str, Any], mode: str) -> dict[str, Any]:
    """Compiles; returns what is worth keeping, in figures of `Fit`, or what the compiler's out-of-memory error says."""
    if mode != "off":
        switch.enable(mode=mode)  # this process is there for one compile only
    started = time.perf_counter()
    try:
        compiled = lowered.compile(compiler_options=options or None)
    except Exception as error:
        text = str(error)
        if not oom.is_exhausted(text):
            lines = text.splitlines() or [type(error).__name__]
            raise FitError(f"the compiler failed: {lines[0]}") from error
        told = oom.parse(text)
        return {
            "exhausted": text.splitlines()[0],
            "needed": told.needed_bytes if told else None,
            "limit": told.limit_bytes if told else None,
            "compile_seconds": time.perf_counter() - started,
        }
    seconds = time.perf_counter() - started
    memory = compiled.memory_analysis()
    record = ledger.records()[-1] if mode != "off" else None
    return {
        "stock_temp_bytes": record.stock_temp_bytes if record else None,
        "reason": record.reason if record else "",
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes,
        "alias_bytes": memory.alias_size_in_bytes,
        "temp_bytes": memory.temp_size_in_bytes,
        "code_bytes": memory.generated_code_size_in_bytes,
        "compile_seconds": seconds,
    }


def _judge(fit: Fit, guess: Estimate | None, known: dict[str, Any], cached: bool) -> Fit:
    """The estimate, and what the compiler said."""
    if "exhausted" in known:
        # What arguments and outputs take is known without it, and lies in the same memory.
        held = guess.argument_bytes + guess.output_bytes - guess.alias_bytes if guess else None
        needed = known["needed"]
        return dataclasses.replace(
            fit,
            fits=False,
            temp_bytes=needed,
            peak_bytes=None if needed is None or held is None else held + needed,
            limit_bytes=known["limit"] or fit.limit_bytes,
            largest_block_bytes=needed,
            compile_seconds=known["compile_seconds"],
            cached=cached,
            reason=f"the compiler ran out of memory: {known['exhausted']}",
        )
    held = known["argument_bytes"] + known["output_bytes"] - known["alias_bytes"]
    peak = held + known["temp_bytes"] + known["code_bytes"]
    fits = None if fit.limit_bytes is None else peak <= fit.limit_bytes
    reasons = [known["reason"]]  # why it was not planned
    if fits is False:
        reasons.append(f"it needs {peak} bytes, and {fit.limit_bytes} are there")
    block = max(known["temp_bytes"], guess.largest_argument_bytes if guess else 0)
    figures = known | {"reason": "; ".join(filter(None, reasons))}
    return dataclasses.replace(fit, fits=fits, peak_bytes=peak, largest_block_bytes=block, cached=cached, **figures)


def _progress(what: str) -> dict[str, str]:
    return {"event": "progress", "what": what}


def _send(events: TextIO, event: dict[str, Any]) -> None:
    events.write(json.dumps(event) + "\n")


def _die_with_parent() -> None:
    """Stdin stays open as long as somebody waits for the result; no compiler outlives that."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
