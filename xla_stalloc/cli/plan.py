"""`xla-stalloc plan`: plan a compiled program and keep the plan."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import click

from xla_stalloc.cli import terminal
from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS


@click.command()
@click.argument("source")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="File for the plan, as JSON.")
@click.option("--module", "name", help="The module to plan; by default the one with the most instructions.")
@click.option(
    "--budget-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_BUDGET_SECONDS,
    show_default=True,
    help="Planning time.",
)
@click.option(
    "--memory-budget-bytes",
    type=click.IntRange(min=0),
    default=0,
    help="Temporary bytes per device that an order may need if it hides more communication for it, on GPUs; "
    "0: as few as hide what stock XLA hides.",
)
@click.option(
    "--free-collectives",
    is_flag=True,
    help="Let collectives leave XLA's order: for programs that all processes run by this plan.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON with the figures instead of text.")
def plan(
    source: str,
    output: str,
    name: str | None,
    budget_seconds: float,
    memory_budget_bytes: int,
    free_collectives: bool,
    as_json: bool,
) -> None:
    """Plan the compiled program in SOURCE and write the plan to a file.

    SOURCE is what `analyze` takes. Apply the plan with MemoryPlan.load(PLAN).apply(module).
    """
    from xla_stalloc.plan import memory_plan

    try:
        with terminal.progress() as bar:
            bar.add_task(f"planning {source}", total=None)
            found = memory_plan.plan(
                source,
                name=name,
                budget_seconds=budget_seconds,
                pin_collectives=not free_collectives,
                memory_budget_bytes=memory_budget_bytes,
            )
        found.save(output)
    except OSError as error:
        _fail(f"{output}: cannot be written: {error.strerror or error}")
    except ValueError as error:  # no compiled program, one that is not modelled, or a plan that failed its check
        _fail(str(error))
    if as_json:
        record = json.loads(found.record.to_json())
        click.echo(json.dumps({**record, "plan": output, "removed_copies": len(found.removed_copies)}))
    else:
        click.echo(found.explain())


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {' '.join(message.split())}", err=True)
    sys.exit(2)
