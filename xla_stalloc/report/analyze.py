"""From any source of compiled programs to reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from xla_stalloc import hlo
from xla_stalloc.hlo import HloError, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.hlo.rewrite import view
from xla_stalloc.lifetimes import Assignment, Lifetimes, of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module, without_garbage_collection
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.report import figures, peak, remedies
from xla_stalloc.report.donation import donated, replicated
from xla_stalloc.report.groups import GROUPINGS, grouped
from xla_stalloc.report.kinds import Kinds
from xla_stalloc.report.model import Advice, MemoryReport, ModuleReport, Unreadable
from xla_stalloc.report.sources import source_of
from xla_stalloc.report.space import Space, space
from xla_stalloc.scheduling.elide import avoidable_copies, edit_for
from xla_stalloc.scheduling.module_bound import module_lower_bound

_T = TypeVar("_T")


def analyze(source: Any, *more: Any, plan: bool = False, name: str | None = None) -> MemoryReport:
    """Where the memory of compiled programs goes.

    Args:
        source: anything that `hlo.open` takes: a `jax.stages.Compiled`, a dump folder, a file of HLO, text, bytes.
        more: further sources.
        plan: also plan each module, and report what that brings.
        name: of the module to report; by default all of them.

    Raises:
        HloError: no source has a compiled program (of that name). What else cannot be read is in the report.
    """
    read = readable([source, *more], name)
    reports = [analyze_module(module, plan=plan, source=origin) for module, origin in read.modules]
    return assemble(reports, read.unreadable)


def assemble(reports: Iterable[ModuleReport], unreadable: Iterable[Unreadable] = ()) -> MemoryReport:
    """The report of several modules, largest first."""
    ordered = sorted(reports, key=lambda report: -1 if report.peak_bytes is None else report.peak_bytes, reverse=True)
    return MemoryReport(tuple(ordered), tuple(unreadable))


@dataclass(frozen=True, slots=True)
class Readable:
    """The compiled programs of some sources.

    Attributes:
        modules: each with the source that it comes from.
        unreadable: what is no compiled program, though it looks like one.
    """

    modules: tuple[tuple[Module, Any], ...]
    unreadable: tuple[Unreadable, ...]


def readable(sources: Sequence[Any], name: str | None = None) -> Readable:
    """Opens what can be opened.

    Raises:
        HloError: nothing can; it says why the first part cannot.
    """
    with without_garbage_collection():
        return _readable(sources, name)


def _readable(sources: Sequence[Any], name: str | None) -> Readable:
    modules, errors = list[tuple[Module, Any]](), list[HloError]()
    for source in sources:
        try:
            for found in hlo.open_each(source, name=name):
                if isinstance(found, HloError):
                    errors.append(found)
                elif found.is_scheduled:
                    modules.append((found, source))
                else:
                    errors.append(_unscheduled(found))
        except HloError as error:
            errors.append(error)
    if not modules:
        raise errors[0]
    return Readable(tuple(modules), tuple(Unreadable(e.source, " ".join(str(e).split())) for e in errors))


def open_modules(source: Any, name: str | None = None) -> list[Module]:
    """The compiled programs of a source.

    Raises:
        HloError: there are none, none of that name, or they have only been lowered.
    """
    return [module for module, _ in readable([source], name).modules]


def _unscheduled(module: Module) -> HloError:
    return HloError(
        module.source,
        f"module {module.name!r} has no schedule yet, so nothing about its memory is decided",
        "Compile it first: jax.jit(f).lower(x).compile()",
    )


def analyze_module(module: Module, *, plan: bool = False, source: Any = None) -> ModuleReport:
    """The report of one module; `source` may tell more of donation than the module does."""
    with without_garbage_collection():
        return _Analysis(module, source).report(plan)


class _Analysis:
    """Gathers what is known of a module, and the reasons why the rest is not."""

    def __init__(self, module: Module, source: Any) -> None:
        self.module = module
        self.source = source
        self.donated = donated(module, source)
        self.reasons: list[str] = []
        self.lifetimes: Lifetimes | None = self._attempt("live ranges", self._live_ranges)
        self.assignment: Assignment | None = self._attempt("buffer assignment", self._assignment)
        self.known = Kinds(self.lifetimes) if self.lifetimes else None
        self.figures = self._figures()
        # Where it reproduces XLA's own figure, the emulation is trusted with everything else.
        self.trusted = self.assignment is not None and self.assignment.temp_bytes == self.figures.temp

    def _attempt(self, what: str, compute: Callable[[], _T | None]) -> _T | None:
        try:
            return compute()
        # Also of what nobody has thought of: a report of all that is known is better than none.
        except Exception as error:
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            self.reasons.append(f"{what}: {kind}{error}")
            return None

    def _live_ranges(self) -> Lifetimes | None:
        if not self.module.is_scheduled:
            raise ValueError("the module has no schedule: it was not compiled")
        return of(without_barriers(self.module))

    def _assignment(self) -> Assignment | None:
        return self.lifetimes.assignment() if self.lifetimes else None

    def _figures(self) -> figures.Figures:
        if self.module.buffer_assignment is not None:
            return figures.from_xla(self.module.buffer_assignment)
        if self.lifetimes is None or self.assignment is None:
            return figures.from_shapes(self.module)
        if self.module.platform not in ("", "cpu", "cuda", "rocm"):
            self.reasons.append(
                f"the source has no buffer assignment of XLA's, and the emulation, which is that of XLA:CPU and "
                f"XLA:GPU, is not exact for {self.module.platform}"
            )
        return figures.from_emulation(self.lifetimes, self.assignment)

    def report(self, plan: bool) -> ModuleReport:
        found = self._attempt("peak", self._peak)
        bound = self._attempt("lower bound", self._lower_bound)
        planned = self._attempt("plan", self._plan) if plan else None
        lost = self._attempt("holes and padding", self._space)
        return ModuleReport(
            name=self.module.name,
            platform=self.module.platform,
            num_partitions=self.module.num_partitions,
            instructions=len(self.module.instructions_by_id),
            figures=self.figures.origin,
            argument_bytes=self.figures.argument,
            output_bytes=self.figures.output,
            alias_bytes=self.figures.alias,
            temp_bytes=self.figures.temp,
            temp_peak_live_bytes=found.bytes if found else None,
            peak_bytes=self.figures.peak,
            peak_at=(found.at.name if found.at else "") if found else None,
            peak_source=source_of(found.at) if found and found.at else "",
            peak_phase=str(self.known.phase(found.at)) if found and found.at and self.known else "",
            order_bound_bytes=found.bytes if found else None,
            lower_bound_bytes=bound,
            constant_bytes=self.figures.constant,
            generated_code_bytes=_generated_code_bytes(self.source),
            **(dataclasses.asdict(lost) if lost else {}),
            other_memory_bytes=self.figures.other_memory,
            live_at_peak=found.live if found else (),
            groups={by: grouped(found.live, by) for by in GROUPINGS} if found else {},
            advice=self._attempt("advice", lambda: self._advice(planned)) or (),
            planned=planned,
            reason="; ".join(dict.fromkeys(self.reasons)),
        )

    def _space(self) -> Space | None:
        if self.lifetimes is None or self.assignment is None:
            return None
        return space(self.module, self.lifetimes, self.assignment)

    def _peak(self) -> peak.Peak | None:
        if self.lifetimes and self.assignment and self.trusted:
            return peak.from_emulation(self.lifetimes, self.assignment, self.known)
        if traced := peak.from_traces(self.module, self.lifetimes, self.known):
            return traced
        if self.lifetimes is None or self.assignment is None:
            return None
        self.reasons.append(
            f"what is live at the peak is approximate: emulated, temps take {self.assignment.temp_bytes} bytes, where "
            f"XLA says {self.figures.temp}"
        )
        return dataclasses.replace(peak.from_emulation(self.lifetimes, self.assignment, self.known), bytes=None)

    def _lower_bound(self) -> int | None:
        if self.lifetimes is None or not self._may_plan():
            return None
        versions = [(self.module, self.lifetimes)]
        if copies := avoidable_copies(self.lifetimes):
            without = view(self.module, {self.module.entry.id: edit_for(copies)})
            versions.append((without, of(without_barriers(without), like=self.lifetimes)))
        # Of all orders, also those that let collectives change places, which one process may do.
        bound = min(module_lower_bound(*version, pin_collectives=False) for version in versions)
        if self.figures.temp is not None and bound > self.figures.temp:
            raise ValueError(f"{bound} bytes were found, which XLA's own order disproves")
        return bound

    def _plan(self) -> PlanRecord | None:
        if not self._may_plan():
            return None
        return plan_module(self.module.proto.SerializeToString(), PlanOptions(mode="report")).record

    def _may_plan(self) -> bool:
        if self.assignment is not None and not self.trusted:
            self.reasons.append(
                f"no bound and no plan: the emulation of buffer assignment finds {self.assignment.temp_bytes} bytes of "
                f"temps where XLA says {self.figures.temp}, so it cannot judge other orders"
            )
        return self.trusted

    def _advice(self, planned: PlanRecord | None) -> tuple[Advice, ...]:
        if self.lifetimes is None or self.assignment is None or self.known is None:
            return tuple(remedies.donation.without_lifetimes(self.module, self.donated))
        subject = remedies.Subject(
            module=self.module,
            lifetimes=self.lifetimes,
            known=self.known,
            assignment=self.assignment,
            donated=frozenset(self.donated),
            peak_bytes=self.figures.peak,
            planned=planned,
            replicated=replicated(self.module, self.source),
        )
        found = remedies.everything(subject)
        return tuple(sorted(found, key=lambda item: (item.moves_peak is False, -item.bytes)))


def _generated_code_bytes(source: Any) -> int | None:
    """Of a `jax.stages.Compiled`; nothing else tells."""
    told = source.memory_analysis() if hasattr(source, "memory_analysis") else None
    found: int | None = getattr(told, "generated_code_size_in_bytes", None)
    return found
