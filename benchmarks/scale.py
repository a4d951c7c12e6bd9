"""Orders for GPUs: memory and exposed communication of XLA's order and of ours, on compiled programs.

    python benchmarks/scale.py [FOLDER] [--card h100] [--memory-budget 0.7] [--json]

The folder (default: XLA_STALLOC_PROGRAMS) holds programs of XLA's GPU compiler, `*.hlo.pb`, also compressed. Temp bytes
are those of the emulated buffer assignment, which equals the compiler's on every one of these programs that has one.
Communication is exposed by the model of `scheduling/cost.py`: per computation, one pass of each loop. Exit code 1 if an
order is worse than XLA's in temp bytes, by the model, or in more than one of nine cases of other times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from schedule import FOLDER, HERE

from xla_stalloc import hlo
from xla_stalloc.cli import terminal
from xla_stalloc.hlo import Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.options import DEFAULT_CARD, PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.scheduling.cost import CARDS, Costs
from xla_stalloc.scheduling.extract import choices, extract
from xla_stalloc.scheduling.overlap import Comparison, times


@click.command()
@click.argument("folder", type=FOLDER, required=False)
@click.option("--card", type=click.Choice(sorted(CARDS)), default=DEFAULT_CARD, show_default=True)
@click.option("--memory-budget", type=float, default=0, help="Part of the stock temp bytes that orders may need.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per program.")
def main(folder: Path | None, card: str, memory_budget: float, as_json: bool) -> None:
    """Plan every GPU program of a folder."""
    folder = folder or Path(os.environ.get("XLA_STALLOC_PROGRAMS") or HERE.parent.parent / "shared" / "programs")
    modules = [hlo.open(path) for path in sorted(folder.glob("*.hlo.pb*"))]
    results = [measured(module, card, memory_budget) for module in modules if module.platform == "cuda"]
    if not results:
        raise click.UsageError(f"no GPU programs in {folder}")
    if as_json:
        for result in results:
            click.echo(json.dumps(result))
    else:
        show(results, card)
    sys.exit(any(r["temp_bytes"] > r["stock_temp_bytes"] or not r["holds"] for r in results))


def measured(module: Module, card: str, memory_budget: float) -> dict[str, Any]:
    """Plans a program; bytes, seconds."""
    budget = int(memory_budget * of(without_barriers(module)).temp_bytes({}))
    options = PlanOptions(pin_collectives=False, card=card, memory_budget_bytes=budget)
    started = time.perf_counter()
    planned = plan_module(module.serialized, options)
    seconds = time.perf_counter() - started
    after = Module.from_bytes(planned.serialized, "planned", like=module) if planned.serialized else module
    compared = list(comparisons(module, after, card))
    return {
        "name": Path(module.source).name.split(".")[0],
        "instructions": len(module.instructions_by_id),
        "stock_temp_bytes": planned.record.stock_temp_bytes,
        "temp_bytes": planned.record.temp_bytes,
        "peak_live_bytes": planned.record.peak_live_bytes,
        "lower_bound_bytes": planned.record.lower_bound_bytes,
        "stock_exposed_seconds": sum(stock for stock, _, _ in compared) / 1e9,
        "exposed_seconds": sum(ours for _, ours, _ in compared) / 1e9,
        "cases_no_worse": min(wins.count(True) for _, _, wins in compared),
        "holds": all(wins[0] and wins.count(False) <= 1 for _, _, wins in compared),
        "plan_seconds": seconds,
        "reason": planned.record.reason,
    }


def comparisons(stock: Module, planned: Module, card: str) -> Any:
    """Of each computation that communicates: exposed nanoseconds of stock and of the plan, and the cases it wins."""
    lifetimes = of(without_barriers(stock))
    orders = {c.id: [i.id for i in c.sequence] for c in planned.computations if c.is_scheduled}
    for computation in stock.computations:
        if computation.id not in lifetimes.dataflow.order or choices(computation) < 2:
            continue
        region = extract(stock, lifetimes, computation, pin_collectives=False)
        known = times(computation, region.members, Costs(CARDS[card]))
        if known.communication.any():
            order = region.order(orders[computation.id])
            compared = Comparison(region.graph, known)
            yield compared.stock[0], compared.exposed(order)[0], compared.wins(order)


def show(results: list[dict[str, Any]], card: str) -> None:
    """Prints the table."""
    columns = (">instructions", ">stock GB", ">ours GB", ">live GB", ">bound GB", ">stock ms", ">ours ms", ">cases")
    title = f"temp per device, communication exposed on {card}"
    table = terminal.table(title, "program", *columns, ">plan s", "")
    for r in results:
        sizes = (r["stock_temp_bytes"], r["temp_bytes"], r["peak_live_bytes"], r["lower_bound_bytes"])
        exposed = (r["stock_exposed_seconds"], r["exposed_seconds"])
        table.add_row(
            r["name"],
            f"{r['instructions']:,}",
            *(f"{size / 1e9:.3f}" for size in sizes),
            *(f"{seconds * 1e3:.2f}" for seconds in exposed),
            f"{r['cases_no_worse']} of 9",
            f"{r['plan_seconds']:.1f}",
            r["reason"],
        )
    terminal.stdout().print(table)


if __name__ == "__main__":
    main()
