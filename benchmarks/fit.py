"""The estimate from shardings against the real compilers, and what compiling in another process costs.

    python benchmarks/fit.py                # compiles what is not in the cache: an hour on two cores
    python benchmarks/fit.py --only 0 2     # some of the configurations

Needs xla_stalloc[tpu,cuda]. Prints a table in Markdown: peak per device, estimated and compiled, the error, seconds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from xla_stalloc.sharding.deviceless import compile_step
from xla_stalloc.sharding.request import Request

CONFIGURATIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("h100:8", "fsdp=8", {"model": "llama_1b"}),
    ("v5e:8x8", "fsdp=16,tp=4", {"model": "llama_1b"}),
    ("h100:8x8", "fsdp=16,tp=4", {"model": "llama_8b"}),
    ("v5p:4x4x4", "fsdp=64", {"model": "llama_8b"}),
    ("h100:8x8", "fsdp=64", {"model": "llama_8b"}),
    ("a100:8", "fsdp=4,tp=2", {"model": "llama_1b", "accumulation": 4}),
    ("v5p:4x4x4", "fsdp=16,tp=4", {"model": "llama_8b", "remat": "dots"}),
    ("h100:8x8", "fsdp=64", {"model": "llama_8b", "remat": "dots"}),
    ("v6e:4x4", "fsdp=16", {"model": "llama_1b", "batch": 32}),
    ("b200:8", "fsdp=8", {"model": "llama_1b", "remat": "none", "batch": 32}),
    ("v5p:2x2x1", "fsdp=4", {"model": "llama_1b", "remat": "none", "batch": 8}),
    ("h100:8x8", "fsdp=64", {"model": "llama_1b", "optimizer": "adafactor"}),
    ("v5p:4x4x4", "fsdp=16,tp=4", {"model": "llama_8b", "seq": 4096, "batch": 32}),
    ("v5e:8x8", "fsdp=16,tp=4", {"model": "llama_8b", "batch": 32}),
    ("h200:8", "fsdp=4,tp=2", {"model": "llama_1b", "optimizer": "lion", "seq": 4096, "batch": 16}),
)
_WITHIN, _BELOW = 0.15, -0.05


def main() -> None:
    """Prints a line as soon as a configuration is compiled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="*", default=range(len(CONFIGURATIONS)))
    chosen = parser.parse_args().only
    print("| | step | devices | mesh | estimated GB | compiled GB | error % | estimate s | compile s | all s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    errors = []
    for number in chosen:
        topology, mesh, arguments = CONFIGURATIONS[number]
        started = time.perf_counter()
        function = "xla_stalloc.models.steps:make_step"
        found = compile_step(Request(function=function, topology=topology, mesh=mesh, arguments=arguments))
        seconds = time.perf_counter() - started
        error, peak, estimate = found.estimate_error, found.peak_bytes, found.estimate_bytes
        assert error is not None and peak is not None and estimate is not None, found.reason
        assert found.compile_seconds is not None
        errors.append(error)
        whole = "cached" if found.cached else f"{seconds:.0f}"
        step = " ".join(str(value) if key == "model" else f"{key}={value}" for key, value in arguments.items())
        print(
            f"| {number} | {step} | {topology} | {mesh} | {estimate / 1e9:.2f} | {peak / 1e9:.2f} | {100 * error:+.1f} "
            f"| {found.estimate_seconds:.1f} | {found.compile_seconds:.0f} | {whole} |",
            flush=True,
        )
    near = sum(abs(error) <= _WITHIN for error in errors)
    below = sum(error < _BELOW for error in errors)
    print(f"\nwithin 15 %: {near} of {len(errors)}; more than 5 % below: {below}")


if __name__ == "__main__":
    main()
