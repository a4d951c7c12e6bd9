"""Measures one program in a process of its own and prints one line of JSON; `schedule.py` runs it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import programs

import xla_stalloc as stalloc
from xla_stalloc.cli.comparison import compare, compile_timed

MEMORY_OPTIMIZED = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def measure(program: programs.Program, steps: int, mode: str) -> dict[str, Any]:
    """Compiles a program three ways, runs stock and planned in turns; bytes per device, seconds."""
    # This compile comes first, so that the costs of the first compile of a process fall on no figure that is compared.
    memory_optimized = program.lower().compile(compiler_options=MEMORY_OPTIMIZED)
    stock, stock_compile_seconds = compile_timed(program.lower())
    stalloc.enable(mode=mode)
    planned, compile_seconds = compile_timed(program.lower())
    record = stalloc.records()[-1]
    stalloc.disable()
    compared = compare(program.bind(stock), program.bind(planned), program.start(), map(program.batch, range(steps)))
    return {
        "jax": jax.__version__,
        "stock_temp_bytes": stock.memory_analysis().temp_size_in_bytes,
        "memory_optimized_temp_bytes": memory_optimized.memory_analysis().temp_size_in_bytes,
        "temp_bytes": planned.memory_analysis().temp_size_in_bytes,
        "lower_bound_bytes": record.lower_bound_bytes,
        "peak_live_bytes": record.peak_live_bytes,
        "record_stock_temp_bytes": record.stock_temp_bytes,
        "levers": list(record.levers),
        "reason": record.reason,
        "compiles": record.compiles,
        "plan_seconds": record.plan_seconds,
        "compile_seconds": compile_seconds,
        "stock_compile_seconds": stock_compile_seconds,
        "steps": steps,
        "step_seconds": compared.step_seconds,
        "stock_step_seconds": compared.stock_step_seconds,
        "step_ratio": compared.step_ratio,
        "bit_identical": compared.bit_identical,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--mode", required=True)
    arguments = parser.parse_args()
    program = programs.load(arguments.name, arguments.programs)
    print(json.dumps({"name": arguments.name} | measure(program, arguments.steps, arguments.mode)))
