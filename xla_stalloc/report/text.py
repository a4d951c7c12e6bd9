"""Reports as text: sections that the terminal draws as tables, and that `render` writes as plain lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xla_stalloc.plan.explain import bound_in_words, saved_percent, size, why_not_lower
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.report.model import Advice, LiveBuffer, MemoryReport, ModuleReport
from xla_stalloc.report.sources import shortened

_EXAMPLES = 3  # of each kind of advice
_SHAPE_WIDTH = 40
_GROUPS = 10  # of each grouping


@dataclass(frozen=True)
class Section:
    """A table with text below it.

    Attributes:
        title: above the table.
        columns: their names; those that start with ``>`` are aligned to the right. Empty: there is no table.
        rows: as many cells as there are columns.
        notes: lines below the table.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def sections(report: ModuleReport, top: int) -> Iterator[Section]:
    """What there is to say about a module, with the `top` largest buffers that are live at its peak."""
    yield _figures(report)
    if report.live_at_peak:
        yield from _groups(report, top)
        yield _live(report, top)
    if report.planned:
        yield _stock_against_planned(report.planned)
    if report.advice:
        yield Section("advice", notes=tuple(_advice(report.advice)))


def overview(reports: Sequence[ModuleReport]) -> Section:
    """A row for each module, in their order, and in the notes which one's details follow."""
    rows = tuple(
        (
            report.name,
            report.platform or "unknown",
            f"{report.instructions:,}",
            *(_known(count) for count in (report.peak_bytes, report.argument_bytes, report.temp_bytes)),
            report.peak_at or "",
            shortened(report.peak_source),
        )
        for report in reports
    )
    columns = ("module", "platform", ">instructions", ">peak", ">arguments", ">temps", "peak at", "source")
    note = f"details of {reports[0].name} follow; --module shows those of another"
    return Section(f"{len(reports)} compiled programs, largest first, per device", columns, rows, (note,))


def _known(count: int | None) -> str:
    return "unknown" if count is None else size(count)


def _figures(report: ModuleReport) -> Section:
    platform = report.platform or "unknown platform"
    devices = f", {report.num_partitions} partitions" if report.num_partitions > 1 else ""
    rows: list[tuple[str, int | None, str]] = [
        ("arguments", report.argument_bytes, ""),
        ("outputs", report.output_bytes, ""),
        ("aliases", report.alias_bytes, "outputs in the memory of donated arguments"),
        ("temps", report.temp_bytes, "while the program runs"),
        ("peak", report.peak_bytes, "arguments + outputs - aliases + temps"),
        ("lower bound of this order", report.order_bound_bytes, "temps; no packing needs less"),
        ("lower bound of any order", report.lower_bound_bytes, "temps; no order of the instructions needs less"),
    ]
    optional = (
        ("constants", report.constant_bytes, "on top of the peak"),
        ("generated code", report.generated_code_bytes, "on top of the peak"),
        ("padding", report.padding_bytes, "at the peak: alignment, and tiles of layouts"),
        ("holes in temps", report.hole_bytes, f"at the peak; the largest {size(report.largest_hole_bytes or 0)}"),
        ("largest block", report.largest_block_bytes, "needed in one piece"),
    )
    rows += [row for row in optional if row[1]]
    rows += [
        (f"memory space {space}", count, "temps, not counted above")
        for space, count in report.other_memory_bytes.items()
    ]
    origin = "XLA's own figures" if report.figures == "xla" else "figures by emulation of XLA's buffer assignment"
    return Section(
        f"{report.name} on {platform}{devices}, {report.instructions:,} instructions, per device",
        ("", ">bytes", ">", ""),
        tuple(
            (name, "" if count is None else f"{count:,}", "unknown" if count is None else size(count), note)
            for name, count, note in rows
        ),
        (origin, *((f"not exact or not known: {report.reason}",) if report.reason else ())),
    )


_BY = {"role": "what it holds", "layer": "layer", "op": "operation", "source": "source line"}


def _groups(report: ModuleReport, top: int) -> Iterator[Section]:
    """What is live at the peak by each grouping that tells more than one thing."""
    total = sum(buffer.bytes for buffer in report.live_at_peak)
    for by, groups in report.groups.items():
        if len(groups) < 2:
            continue
        rows = tuple(
            (size(group.bytes), f"{100 * group.bytes / total:.1f} %", f"{group.buffers:,}", group.name)
            for group in groups[: min(top, _GROUPS)]
        )
        rest = groups[min(top, _GROUPS) :]
        notes = (f"and {len(rest):,} more, {size(sum(g.bytes for g in rest))} together",) if rest else ()
        yield Section(f"live at the peak by {_BY[by]}", (">size", ">share", ">buffers", _BY[by]), rows, notes)


def _live(report: ModuleReport, top: int) -> Section:
    total = sum(buffer.bytes for buffer in report.live_at_peak)
    shown = report.live_at_peak[:top]
    rows = [
        (
            size(buffer.bytes),
            f"{100 * buffer.bytes / total:.1f} %",
            _told(buffer),
            _cut(buffer.shape),
            buffer.name,
            shortened(buffer.source),
        )
        for buffer in shown
    ]
    rest = report.live_at_peak[top:]
    notes = [f"and {len(rest):,} smaller ones, {size(sum(b.bytes for b in rest))} together"] if rest else []
    inside = sum(buffer.bytes for buffer in report.live_at_peak if buffer.kind != "constant")
    if report.peak_bytes is not None and (idle := report.peak_bytes - inside) > 0:
        notes.append(f"the other {size(idle)} of the peak: outputs not written yet, tables of pointers, holes")
    return Section(
        f"live at the peak, while {report.peak_at} runs{_where(report)}: {size(total)}",
        (">size", ">share", "kind", "shape", "instruction", "source"),
        tuple(rows),
        tuple(notes),
    )


def _told(buffer: LiveBuffer) -> str:
    """What a buffer holds; where it lies, if that is not the same."""
    place = f"{buffer.kind} in {buffer.inside}" if buffer.inside else buffer.kind
    return place if buffer.role in ("", buffer.kind) else f"{buffer.role}, {place}"


def _where(report: ModuleReport) -> str:
    told = ", ".join(filter(None, (shortened(report.peak_source), report.peak_phase)))
    return f" ({told})" if told else ""


def _cut(shape: str) -> str:
    return shape if len(shape) <= _SHAPE_WIDTH else shape[: _SHAPE_WIDTH - 3] + "..."


def _advice(items: tuple[Advice, ...]) -> Iterator[str]:
    """The largest of each kind, and how many more there are of it."""
    for kind in dict.fromkeys(item.kind for item in items):
        same = [item for item in items if item.kind == kind]
        yield from (f"- {item.text}" for item in same[:_EXAMPLES])
        if rest := same[_EXAMPLES:]:
            yield f"- and {len(rest)} more of the same kind ({kind}), {size(sum(i.bytes for i in rest))} together"


def _stock_against_planned(record: PlanRecord) -> Section:
    counts = [size(count) for count in (record.stock_temp_bytes, record.temp_bytes, record.saved_bytes)]
    columns = (">stock", ">planned", ">saved", ">lower bound")
    bound = bound_in_words(record).removeprefix("lower bound ")
    notes = (f"saved {saved_percent(record):.1f} %; {why_not_lower(record)}",)
    return Section("temps, stock against planned", columns, ((*counts, bound),), notes)


def render(report: MemoryReport, top: int = 20) -> str:
    """All sections of all modules as plain text, and what could not be read."""
    found = [_plain(section) for module in report.modules for section in sections(module, top)]
    found += [f"Not read: {part.problem}" for part in report.unreadable]
    return "\n\n".join(found) + "\n"


def _plain(section: Section) -> str:
    lines = [section.title]
    if section.columns:
        header = tuple(column.removeprefix(">") for column in section.columns)
        table = [header, *section.rows] if any(header) else list(section.rows)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            cells = [
                cell.rjust(width) if column.startswith(">") else cell.ljust(width)
                for cell, width, column in zip(row, widths, section.columns, strict=True)
            ]
            lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join([*lines, *(f"  {note}" for note in section.notes)])
