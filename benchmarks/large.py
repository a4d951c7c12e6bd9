"""Planning time of a very large module: a GPT training step of 155 unrolled layers, about 20,000 instructions.

    python benchmarks/large.py [--layers N] [--json]

Exit code 1 if the module is planned more slowly than `limits.toml` allows, or is smaller than it asks for.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import click

from xla_stalloc.cli import terminal
from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS


@click.command()
@click.option("--layers", type=click.IntRange(min=1), default=155, show_default=True)
@click.option("--budget-seconds", type=float, default=DEFAULT_BUDGET_SECONDS, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON.")
def main(layers: int, budget_seconds: float, as_json: bool) -> None:
    """Compile the step with planning and report what planning took."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import xla_stalloc as stalloc
    from xla_stalloc import hlo, models
    from xla_stalloc.cli.comparison import compile_timed

    spec = models.get("gpt", layers=layers, width=64, heads=2, batch=2, seq=32)
    mesh = models.make_mesh(1, 1)
    with terminal.progress() as bar:
        bar.add_task(f"tracing, compiling and planning {layers} layers", total=None)
        lowered = spec.jit(mesh, stalloc.jit, budget_seconds=budget_seconds).lower(*spec.arguments(mesh))
        compiled, compile_seconds = compile_timed(lowered)
    record = compiled.stalloc
    result = {
        "layers": layers,
        "instructions": len(hlo.open(compiled).entry.instructions),
        "plan_seconds": record.plan_seconds,
        "compile_seconds": compile_seconds,
        "stock_temp_bytes": record.stock_temp_bytes,
        "temp_bytes": record.temp_bytes,
        "lower_bound_bytes": record.lower_bound_bytes,
        "levers": list(record.levers),
        "reason": record.reason,
    }
    if as_json:
        click.echo(json.dumps(result))
    else:
        table = terminal.table(f"GPT of {layers} unrolled layers", "", ">")
        for key, value in result.items():
            table.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
        terminal.stdout().print(table)
    limits = tomllib.loads((Path(__file__).parent / "limits.toml").read_text())["large"]
    enough = result["instructions"] >= limits["instructions"] and record.levers
    sys.exit(0 if enough and record.plan_seconds < limits["plan_seconds"] else 1)


if __name__ == "__main__":
    main()
