"""`xla-stalloc view`: the memory of compiled programs as a map to look around in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from xla_stalloc.cli import output, terminal

if TYPE_CHECKING:
    from xla_stalloc.hlo import Module
    from xla_stalloc.report.map.boxes import MemoryMap

_COLOURS = ("kind", "layer", "source")  # those of report.map.colours, which is not imported for --help


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-o", "--output", "page_path", type=click.Path(dir_okay=False), help="File for the page, map.html say.")
@click.option("--png", "png_path", type=click.Path(dir_okay=False), help="File for a picture of it.")
@click.option("--module", "name", help="Only the module of this name, e.g. jit_step.")
@click.option("--color", "colour", type=click.Choice(_COLOURS), default="kind", show_default=True)
@click.option("--plan", is_flag=True, help="Also show what planning makes of it, side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON with the figures instead of text.")
def view(
    sources: Sequence[str],
    page_path: str | None,
    png_path: str | None,
    name: str | None,
    colour: str,
    plan: bool,
    as_json: bool,
) -> None:
    """Draw the memory of the compiled programs in SOURCE... as a page: time against address, a box for every buffer.

    The page is one file that needs no network. Several programs share an arena: they are drawn one after the other at
    the same addresses. SOURCE is what `analyze` takes.
    """
    if not (page_path or png_path):
        raise click.UsageError("give a file to write: -o map.html, --png map.png, or both")
    from xla_stalloc.plan.planner import without_garbage_collection
    from xla_stalloc.report.map.arena import aligned, arena
    from xla_stalloc.report.map.boxes import memory_map

    with terminal.progress() as bar, without_garbage_collection():
        task = bar.add_task("reading", total=None)
        modules = _modules(sources, name)
        bar.update(task, description="drawing")
        views = [arena([_told(memory_map, module) for module in modules])]
        reason = ""
        if plan:
            bar.update(task, description="planning")
            planned, reason = _planned(modules)
            views += [arena(planned)] if planned else []
        maps = aligned([drawn for drawn, _ in views])
        bar.update(task, description="writing")
        if page_path:
            from xla_stalloc.report.map.page import View, page

            output.write(
                page_path, page([View(drawn, parts) for drawn, (_, parts) in zip(maps, views, strict=True)], colour)
            )
        if png_path:
            output.write(png_path, _picture(maps, colour))
    if as_json:
        content = {
            "schema": 1,
            "modules": [module.name for module in modules],
            "maps": [_figures(drawn) for drawn in maps],
            "page": page_path,
            "png": png_path,
            "reason": reason,
        }
        click.echo(json.dumps(content, separators=(",", ":")))
        return
    from xla_stalloc.plan.explain import size

    for drawn in maps:
        figures = _figures(drawn)
        click.echo(
            f"{drawn.title}: {figures['buffers']:,} buffers, temps {size(drawn.temp_bytes)}, "
            f"peak {size(drawn.peak_bytes)}" + (f" at {drawn.peak_at}" if drawn.peak_at else "")
        )
    if reason:
        click.echo(f"not planned: {reason}")
    click.echo(f"written: {', '.join(filter(None, [page_path, png_path]))}")


def _modules(sources: Sequence[str], name: str | None) -> list[Module]:
    """The compiled programs of all sources."""
    from xla_stalloc.hlo import HloError
    from xla_stalloc.report.analyze import open_modules

    try:
        found = [module for source in sources for module in open_modules(source, name)]
    except HloError as error:
        _fail(str(error))
    return [module for module in found if module.is_scheduled]


def _told(draw: Callable[[Module], MemoryMap], module: Module) -> MemoryMap:
    try:
        return draw(module)
    except ValueError as error:  # the module has a form whose memory is not modelled
        _fail(str(error))


def _planned(modules: Sequence[Module]) -> tuple[list[MemoryMap], str]:
    """The plans' maps, or none and the reason."""
    from xla_stalloc.report.map.planned import planned_map

    try:
        return [planned_map(module) for module in modules], ""
    except ValueError as error:
        return [], " ".join(str(error).split())


def _picture(maps: Sequence[MemoryMap], colour: str) -> bytes:
    try:
        from xla_stalloc.report.map.picture import picture
    except ImportError as error:
        _fail(f"--png needs matplotlib, and it cannot be imported: {error}; pip install 'xla_stalloc[view]'")
    return picture(maps, colour)


def _figures(drawn: MemoryMap) -> dict[str, Any]:
    return {
        "title": drawn.title,
        "origin": drawn.origin,
        "instructions": len(drawn.instructions),
        "buffers": len(drawn.values),
        "temp_bytes": drawn.temp_bytes,
        "temp_peak_live_bytes": drawn.peak_bytes,
        "peak_at": drawn.peak_at,
        "bands": {band.name: band.size for band in drawn.bands},
    }


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {' '.join(message.split())}", err=True)
    sys.exit(2)
