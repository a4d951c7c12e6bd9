"""What changed in memory between two compiles, by source line and by kind."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from xla_stalloc.hlo import Module
from xla_stalloc.report.analyze import analyze_module, open_modules
from xla_stalloc.report.model import LiveBuffer, ModuleReport
from xla_stalloc.report.sizes import Growth

SCHEMA = 1
"""Version of the JSON form; new keys do not raise it."""
TOTALS = ("peak_bytes", "temp_bytes", "argument_bytes", "output_bytes", "alias_bytes", "constant_bytes")


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes of one thing in both compiles; None: not known."""

    name: str
    before: int | None
    after: int | None

    @property
    def grown(self) -> int:
        """Bytes that were added; 0 if one side is not known."""
        return 0 if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class ModuleDiff:
    """What changed in a module that both compiles have.

    Attributes:
        name: of the module, in the second compile.
        same_program: both compile to the same instructions, whatever their names and order.
        totals: one for each of `TOTALS`.
        by_source: of what is live at the peak, by ``file:line`` or argument; most grown first, unchanged ones left out.
        by_kind: the same by kind.
        reason: why something is not known.
    """

    name: str
    same_program: bool
    totals: tuple[Change, ...]
    by_source: tuple[Change, ...]
    by_kind: tuple[Change, ...]
    reason: str = ""

    @property
    def peak(self) -> Change:
        """The change of the peak."""
        return self.totals[0]

    def grew_beyond(self, growth: Growth) -> bool:
        """Whether the peak grew by more than is allowed; also if it is not known, since then nothing was checked."""
        before, after = self.peak.before, self.peak.after
        return before is None or after is None or not growth.allows(before, after)


@dataclass(frozen=True, slots=True)
class Diff:
    """Two compiles side by side.

    Attributes:
        modules: that both have, most grown first.
        added: names of the modules that only the second has.
        removed: names of those that only the first has.
    """

    modules: tuple[ModuleDiff, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def grew_beyond(self, growth: Growth) -> tuple[str, ...]:
        """Names of the modules whose peak grew by more than is allowed."""
        return tuple(module.name for module in self.modules if module.grew_beyond(growth))

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return {"schema": SCHEMA, **dataclasses.asdict(self)}

    def to_json(self) -> str:
        """One line of JSON; keys as the attributes of these classes."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


def diff(before: Any, after: Any, *, name: str | None = None) -> Diff:
    """What changed from one source of compiled programs to another; sources are those of `hlo.open`.

    Args:
        before: the first compile.
        after: the second.
        name: of the one module to compare. By default all are matched: those with the same program first, then by
            name and order; a single module on either side is matched whatever its name.

    Raises:
        HloError: a source has no compiled program, or none of that name.
    """
    first, second = (_scheduled(open_modules(source, name)) for source in (before, after))
    pairs = match(first, second)
    compared = [compare(analyze_module(a), analyze_module(b), same_program=same) for a, b, same in pairs]
    matched = {id(module) for a, b, _ in pairs for module in (a, b)}
    return Diff(
        tuple(sorted(compared, key=lambda module: -module.peak.grown)),
        added=tuple(module.name for module in second if id(module) not in matched),
        removed=tuple(module.name for module in first if id(module) not in matched),
    )


def match(before: Sequence[Module], after: Sequence[Module]) -> list[tuple[Module, Module, bool]]:
    """Modules that belong together, and whether they are the same program, in the order of the second compile."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0], before[0].fingerprint() == after[0].fingerprint())]
    prints = {id(module): module.fingerprint() for module in (*before, *after)}
    left = list(before)
    found: dict[int, tuple[Module, Module, bool]] = {}
    # The same program under the same name, then the same name, then the same program under another name.
    keys: tuple[Callable[[Module], Any], ...] = (
        lambda module: (module.name, prints[id(module)]),
        lambda module: module.name,
        lambda module: prints[id(module)],
    )
    for key in keys:
        waiting: defaultdict[Any, list[Module]] = defaultdict(list)
        for module in left:
            waiting[key(module)].append(module)
        for number, module in enumerate(after):
            if number not in found and waiting[key(module)]:
                partner = waiting[key(module)].pop(0)
                left.remove(partner)
                found[number] = (partner, module, prints[id(partner)] == prints[id(module)])
    return [found[number] for number in sorted(found)]


def compare(before: ModuleReport, after: ModuleReport, *, same_program: bool = False) -> ModuleDiff:
    """What changed between two reports of a module."""
    reasons = dict.fromkeys(filter(None, (before.reason, after.reason)))
    return ModuleDiff(
        name=after.name,
        same_program=same_program,
        totals=tuple(Change(total, getattr(before, total), getattr(after, total)) for total in TOTALS),
        by_source=_changes(before.live_at_peak, after.live_at_peak, lambda buffer: buffer.source or "(no source)"),
        by_kind=_changes(before.live_at_peak, after.live_at_peak, lambda buffer: buffer.kind),
        reason="; ".join(reasons),
    )


def _changes(
    before: Iterable[LiveBuffer], after: Iterable[LiveBuffer], key: Callable[[LiveBuffer], str]
) -> tuple[Change, ...]:
    sums: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for counted, buffers in zip(sums, (before, after), strict=True):
        for buffer in buffers:
            counted[key(buffer)] += buffer.bytes
    changes = [Change(name, sums[0][name], sums[1][name]) for name in sums[0] | sums[1]]
    return tuple(sorted((c for c in changes if c.grown), key=lambda change: (-change.grown, change.name)))


def _scheduled(modules: Iterable[Module]) -> list[Module]:
    return [module for module in modules if module.is_scheduled]
