"""`xla-stalloc pool`: do programs and state fit into a GPU's memory pool."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from xla_stalloc.cli import terminal
from xla_stalloc.cli.options import BytesType

if TYPE_CHECKING:
    from xla_stalloc.report.pool import Fit, Program

_ALLOCATORS = ("bfc", "cuda_async", "vmm", "platform")  # those of report.pool, which is not imported for --help
_SIZE = BytesType()


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--card", type=_SIZE, required=True, help="Memory of the card, 80GiB say.")
@click.option("--allocator", type=click.Choice(_ALLOCATORS), default="bfc", show_default=True)
@click.option("--fraction", type=float, default=0.75, show_default=True, help="XLA_PYTHON_CLIENT_MEM_FRACTION.")
@click.option(
    "--factor", type=float, default=95.0, show_default=True, help="xla_gpu_memory_limit_slop_factor, in per cent."
)
@click.option("--resident", type=_SIZE, default=0, help="State that stays between steps. [default: 0]")
@click.option("--outside", type=_SIZE, default=0, help="What libraries hold outside of the pool. [default: 0]")
@click.option(
    "--reserve", type=_SIZE, help="To stay free outside of the pool. [default: 7% of the card for cuda_async]"
)
@click.option("--block", "blocks", type=_SIZE, multiple=True, help="A program's block of temporaries; may be repeated.")
@click.option("--arena", "arenas", type=_SIZE, multiple=True, help="One that follows the factor: its size at 100 %.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text.")
def pool(
    sources: Sequence[str],
    card: int,
    allocator: str,
    fraction: float,
    factor: float,
    resident: int,
    outside: int,
    reserve: int | None,
    blocks: Sequence[int],
    arenas: Sequence[int],
    as_json: bool,
) -> None:
    """Say whether programs and their state fit into a GPU's memory pool, and with which settings they would.

    Programs are compiled ones (SOURCE is what `analyze` takes) or sizes of their temporaries (--block, --arena). Of a
    SOURCE, the temporaries, and the outputs that are in memory of their own, are asked for; its arguments are part of
    --resident. Exit code 1: refused.
    """
    from xla_stalloc.hlo import HloError
    from xla_stalloc.report import pool as arithmetic
    from xla_stalloc.report.sizes import gib

    programs = [arithmetic.Program(f"block {number}", size) for number, size in enumerate(blocks, 1)]
    programs += [arithmetic.Program(f"arena {number}", size, scales=True) for number, size in enumerate(arenas, 1)]
    try:
        programs += [program for source in sources for program in _programs(source)]
        held = arithmetic.Card(card, allocator, outside, reserve)  # type: ignore[arg-type]  # click checked it
        found = arithmetic.fit(held, programs, resident, fraction=fraction, factor=factor)
    except (HloError, ValueError) as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    if as_json:
        content = {"schema": 1, "card_bytes": card, "allocator": allocator, **dataclasses.asdict(found)}
        click.echo(json.dumps(content, separators=(",", ":")))
    else:
        click.echo(f"{found.verdict}: {allocator}, {_settings(found)}")
        table = terminal.table("memory", "", ">GiB")
        rows = {
            "card": card,
            "pool limit": found.limit_bytes,
            "outside of the pool": found.outside_bytes,
            "to stay free outside": found.reserve_bytes,
            "resident state": found.resident_bytes,
            f"largest block ({found.block_of})": found.block_bytes,
            "margin in the pool": found.pool_margin_bytes,
            "margin of the card": found.card_margin_bytes,
        }
        for name, size in rows.items():
            table.add_row(name, gib(size).removesuffix(" GiB"))
        terminal.stdout().print(table)
        if allocator != "platform":
            click.echo(f"feasible fractions at factor {factor:g}: {_range(found.fractions, '.3f')}")
        if arenas:
            click.echo(f"feasible factors at this fraction: {_range(found.factors, '.1f')}")
        for reason in found.reasons:
            click.echo(f"- {reason}")
    sys.exit(1 if found.verdict == "refused" else 0)


def _programs(source: str) -> list[Program]:
    """The programs of a source, by what each asks for at once."""
    from xla_stalloc.report.analyze import analyze
    from xla_stalloc.report.pool import Program

    found = []
    for module in analyze(source).modules:
        if module.temp_bytes is None:
            raise ValueError(f"{source}: the temporaries of {module.name} are not known: {module.reason}")
        found.append(Program(module.name, module.temp_bytes + module.output_bytes - module.alias_bytes))
    return found


def _settings(found: Fit) -> str:
    pool = "no pool" if found.fraction is None else f"fraction {found.fraction:g}"
    return f"{pool}, factor {found.factor:g}"


def _range(ends: tuple[float, float] | None, form: str) -> str:
    if ends is None:
        return "none"
    low, high = (format(end, form) for end in ends)
    return f"{low} to {high}"
