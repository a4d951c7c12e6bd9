"""From any source of compiled programs to reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from xla_stalloc import hlo
from xla_stalloc.hlo import HloError, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.hlo.rewrite import view
from xla_stalloc.lifetimes import Assignment, Lifetimes, of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.report import advice, figures, peak
from xla_stalloc.report.donation import donated
from xla_stalloc.report.model import Advice, MemoryReport, ModuleReport
from xla_stalloc.scheduling.elide import avoidable_copies, edit_for
from xla_stalloc.scheduling.module_bound import module_lower_bound

_T = TypeVar("_T")


def analyze(source: Any, *, plan: bool = False, name: str | None = None) -> MemoryReport:
    """Where the memory of compiled programs goes.

    Args:
        source: anything that `hlo.open` takes: a `jax.stages.Compiled`, a dump folder, a file of HLO, text, bytes.
        plan: also plan each module, and report what that brings.
        name: of the module to report; by default all of them.

    Raises:
        HloError: there is no compiled program in the source, or none of that name.
    """
    return MemoryReport(
        tuple(analyze_module(module, plan=plan, source=source) for module in open_modules(source, name))
    )


def open_modules(source: Any, name: str | None = None) -> list[Module]:
    """The compiled programs of a source.

    Raises:
        HloError: there are none, none of that name, or they have only been lowered.
    """
    modules = hlo.open_all(source) if name is None else [hlo.open(source, name=name)]
    if not any(module.is_scheduled for module in modules):
        raise HloError(
            modules[0].source,
            f"module {modules[0].name!r} has no schedule yet, so nothing about its memory is decided",
            "Compile it first: jax.jit(f).lower(x).compile()",
        )
    return modules


def analyze_module(module: Module, *, plan: bool = False, source: Any = None) -> ModuleReport:
    """The report of one module; `source` may tell more of donation than the module does."""
    return _Analysis(module, source).report(plan)


class _Analysis:
    """Gathers what is known of a module, and the reasons why the rest is not."""

    def __init__(self, module: Module, source: Any) -> None:
        self.module = module
        self.donated = donated(module, source)
        self.reasons: list[str] = []
        self.lifetimes: Lifetimes | None = self._attempt("live ranges", self._live_ranges)
        self.assignment: Assignment | None = self._attempt("buffer assignment", self._assignment)
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
            peak_at=found.at if found else None,
            lower_bound_bytes=bound,
            constant_bytes=self.figures.constant,
            other_memory_bytes=self.figures.other_memory,
            live_at_peak=found.live if found else (),
            advice=self._attempt("advice", self._advice) or (),
            planned=self._attempt("plan", self._plan) if plan else None,
            reason="; ".join(dict.fromkeys(self.reasons)),
        )

    def _peak(self) -> peak.Peak | None:
        if self.lifetimes and self.assignment and self.trusted:
            return peak.from_emulation(self.lifetimes, self.assignment)
        if traced := peak.from_traces(self.module, self.lifetimes):
            return traced
        if self.lifetimes is None or self.assignment is None:
            return None
        self.reasons.append(
            f"what is live at the peak is approximate: emulated, temps take {self.assignment.temp_bytes} bytes, where "
            f"XLA says {self.figures.temp}"
        )
        return dataclasses.replace(peak.from_emulation(self.lifetimes, self.assignment), bytes=None)

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

    def _advice(self) -> tuple[Advice, ...]:
        found = [
            *(advice.copies(self.lifetimes) if self.lifetimes else ()),
            *advice.unusable_donations(self.module, self.donated),
            *advice.live_together(self.module, self.donated),
        ]
        return tuple(sorted(found, key=lambda item: -item.bytes))
