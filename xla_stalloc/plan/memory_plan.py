"""A plan as an object: to look at, to keep in a file, and to apply to the program again elsewhere."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xla_stalloc import hlo
from xla_stalloc.hlo import Computation, HloError, Instruction, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.hlo.rewrite import Edit, serialize
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.explain import bound_in_words, saved_percent, size, why_not_lower
from xla_stalloc.plan.options import DEFAULT_BUDGET_SECONDS, PlannedModule, PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.plan.verify import PlanError, verify
from xla_stalloc.scheduling.elide import avoidable_copies, edit_for

SCHEMA = 1
_Item = Computation | Instruction
_NAMED = 5  # removed copies that `explain` names


@dataclass(frozen=True, slots=True)
class Named:
    """An instruction or computation: its id in the module that was planned, and its name there."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Order:
    """The order of one computation."""

    computation: Named
    instructions: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What planning decided for one program.

    Attributes:
        module: name of the module.
        fingerprint: of the program; the plan applies to no other.
        options: with which it was planned.
        record: the figures, by emulation of XLA's buffer assignment.
        orders: of the computations that do not keep stock's.
        removed_copies: copies of donated arguments that are left out.
    """

    module: str
    fingerprint: str
    options: PlanOptions
    record: PlanRecord
    orders: tuple[Order, ...] = ()
    removed_copies: tuple[Named, ...] = ()

    def apply(self, module: Module) -> bytes:
        """The serialized HloModuleProto of `module`, a compile of the planned program, with the planned order.

        Raises:
            PlanError: it is another program, or the plan does not pass the verifier.
        """
        found = module.fingerprint()
        if found != self.fingerprint:
            raise PlanError(
                f"{module.source}: module {module.name!r} has fingerprint {found}, but this is a plan of "
                f"{self.module!r} with fingerprint {self.fingerprint}; plan this program anew"
            )
        if not self.orders and not self.removed_copies:
            stock: bytes = module.proto.SerializeToString(deterministic=True)
            return stock
        computations = {c.id: c for c in module.computations}
        instructions = module.instructions_by_id
        names = {i.name: i for i in instructions.values()}
        computation_names = {c.name: c for c in module.computations}

        def find(named: Named) -> int:
            return _find(named, instructions, names, module.source)

        orders = {
            _find(order.computation, computations, computation_names, module.source): [*map(find, order.instructions)]
            for order in self.orders
        }
        removed = set(map(find, self.removed_copies))
        try:
            planned = serialize(module, _edits(module, removed), orders)
            verify(module, planned, self.options.pin_collectives)
        except PlanError:
            raise
        except ValueError as error:
            raise PlanError(f"{module.source}: the plan does not fit module {module.name!r}: {error}") from error
        return planned

    def explain(self) -> str:
        """What the plan brings, what it changes, and why it does not bring more."""
        record = self.record
        lines = [
            f"plan of {self.module}, fingerprint {self.fingerprint}",
            f"temps: stock {size(record.stock_temp_bytes)}, planned {size(record.temp_bytes)}, saved "
            f"{size(record.saved_bytes)} ({saved_percent(record):.1f} %); {bound_in_words(record)}",
            why_not_lower(record),
        ]
        if self.removed_copies:
            names = ", ".join(copy.name for copy in self.removed_copies[:_NAMED])
            more = f" and {len(self.removed_copies) - _NAMED} more" if len(self.removed_copies) > _NAMED else ""
            lines.append(f"copies of donated arguments left out: {names}{more}")
        lines += [f"ordered anew: {o.computation.name}, {len(o.instructions)} instructions" for o in self.orders]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The plan as JSON; `from_json` reads it back to an equal plan."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, origin: str) -> MemoryPlan:
        """Reads what `to_json` wrote.

        Args:
            text: the JSON.
            origin: where it comes from, for messages.

        Raises:
            PlanError: it is something else; names the origin and what was expected.
        """
        try:
            return _of_json(json.loads(text))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise PlanError(
                f"{origin}: expected a plan as MemoryPlan.save writes it (schema {SCHEMA}), but {problem}"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan as JSON; a reader sees the old file or the new one, never half of one.

        Raises:
            OSError: the file cannot be written.
        """
        target = Path(path)
        text = self.to_json()
        with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                file.write(text)
                file.close()
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MemoryPlan:
        """Reads what `save` wrote.

        Raises:
            PlanError: there is no such file, or it holds something else; names the path and what was expected.
        """
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise PlanError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from error
        return cls.from_json(text, os.fspath(path))


def plan(
    source: Any,
    *,
    name: str | None = None,
    budget_seconds: float = DEFAULT_BUDGET_SECONDS,
    pin_collectives: bool = True,
    memory_budget_bytes: int = 0,
) -> MemoryPlan:
    """Plans a compiled program.

    Args:
        source: anything that `hlo.open` takes and that has been compiled.
        name: which module, if the source has several; by default the one with the most instructions.
        budget_seconds: of planning, nominal: the plan depends on this number and never on a clock.
        pin_collectives: see `PlanOptions`.
        memory_budget_bytes: see `PlanOptions`.

    Raises:
        HloError: there is no compiled program in the source.
        UnsupportedModuleError: the module has a form whose memory is not modelled.
        PlanError: the plan did not pass the verifier.
    """
    module = hlo.open(source, name=name)
    if not module.is_scheduled:
        raise HloError(
            module.source,
            f"module {module.name!r} has no schedule yet, so there is nothing to improve",
            "Compile it first: jax.jit(f).lower(x).compile()",
        )
    options = PlanOptions(
        budget_seconds=budget_seconds, pin_collectives=pin_collectives, memory_budget_bytes=memory_budget_bytes
    )
    return plan_of(module, options, plan_module(module.proto.SerializeToString(), options))


def plan_of(module: Module, options: PlanOptions, decided: PlannedModule) -> MemoryPlan:
    """What the planner decided for `module`, as a plan."""
    fingerprint = module.fingerprint()
    changes = MemoryPlan(module.name, fingerprint, options, decided.record.replace(fingerprint=fingerprint))
    if decided.serialized is None:
        return changes
    planned = Module.from_bytes(decided.serialized, "planned module", like=module)
    removed = [i for id, i in module.instructions_by_id.items() if id not in planned.instructions_by_id]
    return dataclasses.replace(
        changes,
        orders=tuple(
            Order(Named(after.id, after.name), tuple(Named(i.id, i.name) for i in after.sequence))
            for before, after in zip(module.computations, planned.computations, strict=True)
            if [i.id for i in before.sequence] != [i.id for i in after.sequence]
        ),
        removed_copies=tuple(Named(i.id, i.name) for i in removed),
    )


def _edits(module: Module, removed: set[int]) -> dict[int, Edit]:
    """What leaves these copies out, with the control dependencies that `module` itself shows to be needed."""
    if not removed:
        return {}
    copies = [copy for copy in avoidable_copies(of(without_barriers(module))) if copy.copy.id in removed]
    if len(copies) != len(removed):
        raise PlanError(f"{module.source}: the plan leaves out copies that module {module.name!r} needs")
    return {module.entry.id: edit_for(copies)}


def _find(named: Named, by_id: Mapping[int, _Item], by_name: Mapping[str, _Item], source: str) -> int:
    """The id of what the plan names: ids and names differ between compiles of a program, though rarely both."""
    same = by_id.get(named.id)
    found = same if same is not None and same.name == named.name else by_name.get(named.name)
    if found is None:
        raise PlanError(
            f"{source}: it is the planned program, but its parts have other names ({named.name!r} is missing): it was "
            "compiled by another version of XLA, say; plan it anew"
        )
    return found.id


def _of_json(raw: Any) -> MemoryPlan:
    if not isinstance(raw, dict):
        raise ValueError(f"it holds a {type(raw).__name__}")
    if raw.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {raw.get('schema')!r}")
    options = PlanOptions(**raw["options"])
    return MemoryPlan(
        module=raw["module"],
        fingerprint=raw["fingerprint"],
        options=options,
        record=PlanRecord.from_json(json.dumps(raw["record"])),
        orders=tuple(Order(Named(**o["computation"]), _named(o["instructions"])) for o in raw["orders"]),
        removed_copies=_named(raw["removed_copies"]),
    )


def _named(raw: list[dict[str, Any]]) -> tuple[Named, ...]:
    return tuple(Named(**item) for item in raw)
