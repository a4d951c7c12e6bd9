"""A diff in words: as tables for the terminal, as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xla_stalloc.plan.explain import size
from xla_stalloc.report.diff import Change, Diff, ModuleDiff
from xla_stalloc.report.sources import shortened
from xla_stalloc.report.text import Section

_COLUMNS = (">before", ">after", ">change", ">%")
_NAMES = {
    "peak_bytes": "peak",
    "temp_bytes": "temps",
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "alias_bytes": "of them aliased",
    "constant_bytes": "constants",
}


def sections(diff: Diff, top: int) -> Iterator[Section]:
    """What there is to say, with the `top` lines that changed most."""
    for module in diff.modules:
        same = ", the same program" if module.same_program else ""
        notes = (f"not known: {module.reason}",) if module.reason else ()
        yield Section(f"{module.name}{same}", ("", *_COLUMNS), _rows(module.totals), notes)
        if module.by_source:
            yield Section("live at the peak, by source line", ("source", *_COLUMNS), *_most(module.by_source, top))
            yield Section("live at the peak, by kind", ("kind", *_COLUMNS), _rows(module.by_kind))
    yield from (Section(f"only in the second: {name}") for name in diff.added)
    yield from (Section(f"only in the first: {name}") for name in diff.removed)


def markdown(diff: Diff, top: int, verdict: str = "") -> str:
    """GitHub-flavoured Markdown: the totals of every module, and what changed below a fold."""
    lines = ["### Memory", ""]
    if verdict:
        lines += [f"**{_escaped(verdict)}**", ""]
    peaks = [(_code(module.name), *_cells(module.peak), *_cells(module.totals[1])[:3]) for module in diff.modules]
    if peaks:
        columns = ("module", ">peak before", ">after", ">change", ">%", ">temps before", ">after", ">change")
        lines += [*_table(columns, peaks), ""]
    for module in diff.modules:
        if module.by_source:
            lines += [f"<details><summary>{_escaped(module.name)}: what is live at the peak</summary>", ""]
            lines += _folded(module, top)
            lines += ["</details>", ""]
        if module.reason:
            lines += [f"{_code(module.name)}: not known: {_escaped(module.reason)}", ""]
    lines += [f"- only in the second: {_code(name)}" for name in diff.added]
    lines += [f"- only in the first: {_code(name)}" for name in diff.removed]
    if not (peaks or diff.added or diff.removed):
        lines.append("Nothing to compare.")
    return "\n".join(lines).rstrip() + "\n"


def _folded(module: ModuleDiff, top: int) -> Iterator[str]:
    for column, changes in (("source", module.by_source), ("kind", module.by_kind)):
        rows, notes = _most(changes, top)
        yield from _table((column, *_COLUMNS), [(_code(row[0]), *row[1:]) for row in rows])
        yield from ("", *(f"{note}  " for note in notes), "")


def _most(changes: Sequence[Change], top: int) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The rows of those that changed most, in the order of the changes, and a note on the rest."""
    shown = set(sorted(changes, key=lambda change: -abs(change.grown))[:top])
    rest = [change for change in changes if change not in shown]
    notes = (f"and {len(rest)} smaller changes, {_signed(sum(c.grown for c in rest))} together",) if rest else ()
    return _rows(change for change in changes if change in shown), notes


def _rows(changes: Iterable[Change]) -> tuple[tuple[str, ...], ...]:
    return tuple((_NAMES.get(change.name, shortened(change.name)), *_cells(change)) for change in changes)


def _cells(change: Change) -> tuple[str, str, str, str]:
    before, after = (("not known" if side is None else size(side)) for side in (change.before, change.after))
    if change.before is None or change.after is None:
        return before, after, "", ""
    percent = f"{100 * change.grown / change.before:+.1f}" if change.before else ("new" if change.after else "")
    return before, after, _signed(change.grown), percent if change.grown else ""


def _signed(count: int) -> str:
    return ("+" if count > 0 else "-" if count < 0 else "") + size(abs(count))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(column.removeprefix(">") for column in columns) + " |"
    yield "|" + "|".join("---:" if column.startswith(">") else "---" for column in columns) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)


def _code(text: str) -> str:
    # A pipe ends a cell of a table also inside of code.
    return f"`{text.replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
