"""Small edits of a module: instructions that disappear, and control dependencies that are added.

A view shares all that is unchanged with the module that it was made from, so it costs little beside opening a module.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xla_stalloc.hlo.module import Computation, Instruction, Module
from xla_stalloc.hlo.schema import hlo_pb2


@dataclass(frozen=True)
class Edit:
    """What changes in one computation.

    Attributes:
      stands_for: id of an instruction that disappears -> id of what its users read instead.
      unused: ids of further instructions that disappear; nothing that stays reads them.
      control_predecessors: id of an instruction -> ids of what must run before it from now on.
    """

    stands_for: Mapping[int, int]
    unused: Collection[int] = ()
    control_predecessors: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def is_gone(self, id: int) -> bool:
        """Whether the instruction disappears."""
        return id in self.stands_for or id in self.unused


_NOTHING = Edit({})


def view(module: Module, edits: Mapping[int, Edit]) -> Module:
    """The module as it is after `edits` (by computation id), for reading: its `proto` is still the original's.

    Instructions keep their ids. Those that depend on a later one now are moved behind it, also in the schedule.
    """
    _ = module.platform  # recognized once, for all views
    result = copy.copy(module)
    for cached in ("instructions_by_id", "_computations_by_id"):
        result.__dict__.pop(cached, None)
    rebuilt: dict[int, Computation] = {}
    computations = []
    for computation in module.computations:  # callees come before their callers
        if computation.id in edits or _calls(computation, rebuilt):
            edit = edits.get(computation.id, _NOTHING)
            computation = rebuilt[computation.id] = _rebuild(computation, edit, result, rebuilt)
        computations.append(computation)
    result.computations = computations
    result.entry = next(c for c in computations if c.id == module.entry.id)
    return result


def _calls(computation: Computation, rebuilt: Mapping[int, Computation]) -> bool:
    # What was not read yet is a fusion or the like, and only calls its like.
    return not computation.read and any(c.id in rebuilt for i in computation.instructions for c in i.called)


def _rebuild(old: Computation, edit: Edit, module: Module, rebuilt: Mapping[int, Computation]) -> Computation:
    needs = {i.id: _needs(i, edit) for i in old.instructions if not edit.is_gone(i.id)}
    by_id = {i.id: i for i in old.instructions}
    new = Computation(old.proto, module)
    made: dict[int, Instruction] = {}
    for id in valid_order(list(needs), needs):
        before = by_id[id]
        operands, control = needs[id]
        instruction = made[id] = Instruction(before.proto, before.shape, new)
        instruction.operands = [made[operand] for operand in operands]
        instruction.control_predecessors = [made[other] for other in control]
        instruction.called = [rebuilt.get(c.id, c) for c in before.called]
        for operand in instruction.operands:
            if not operand.users or operand.users[-1] is not instruction:
                operand.users.append(instruction)
    new.instructions = list(made.values())
    new.parameters = [made[parameter.id] for parameter in old.parameters]
    new.root = made[edit.stands_for.get(old.root.id, old.root.id)]
    new.is_scheduled = old.is_scheduled
    new.sequence = [made[id] for id in valid_order([i.id for i in old.sequence if i.id in made], needs)]
    return new


_Needs = tuple[Sequence[int], Sequence[int]]  # ids of operands, and of control predecessors


def _needs(instruction: Instruction, edit: Edit) -> _Needs:
    operands = [edit.stands_for.get(o.id, o.id) for o in instruction.operands]
    kept = [p.id for p in instruction.control_predecessors if not edit.is_gone(p.id)]
    present = {*kept, *operands}
    added = [p for p in edit.control_predecessors.get(instruction.id, ()) if p not in present]
    return operands, kept + added


def valid_order(wanted: Iterable[int], needs: Mapping[int, _Needs]) -> list[int]:
    """The order close to `wanted` in which everything stands behind what it needs: depth first along it."""
    order: dict[int, None] = {}
    for start in wanted:
        stack = [start]
        while stack:
            id = stack[-1]
            missing = [other for group in needs[id] for other in group if other not in order] if id not in order else []
            if missing:
                stack.extend(missing)
            else:
                order.setdefault(stack.pop())
    return list(order)


def serialize(
    module: Module,
    edits: Mapping[int, Edit],
    orders: Mapping[int, Sequence[int]],
    edited: Module | None = None,
) -> bytes:
    """The serialized HloModuleProto of `module` after `edits`, with other orders.

    What does not change keeps its bytes. The result is the same in every process of a multi-host job, each of which
    must hand the same bytes to its compiler.

    Args:
      module: the original.
      edits: by computation id.
      orders: computation id -> ids of all its instructions that remain, in the order in which they run.
      edited: `view(module, edits)`, if it is at hand.

    Raises:
      ValueError: no such computation, or an order that is not one of its instructions.
    """
    edited = edited or view(module, edits)
    parts = hlo_pb2.HloModuleParts.FromString(module.serialized)
    place = {computation.id: number for number, computation in enumerate(module.proto.computations)}
    for id in dict.fromkeys([*edits, *orders]):
        if id not in place:
            raise ValueError(f"{module.source}: module {module.name!r} has no computation with id {id}")
        computation = edited.computation(id)
        ids = orders.get(id) or [i.id for i in computation.sequence]
        if sorted(ids) != sorted(i.id for i in computation.instructions):
            raise ValueError(f"{computation.name}: the new order must have each of its instructions exactly once")
        parts.schedule.sequences[id].instruction_ids[:] = ids
        if id in edits:
            message = hlo_pb2.HloComputationProto.FromString(parts.computations[place[id]])
            _write(message, computation)
            parts.computations[place[id]] = message.SerializeToString(deterministic=True)
    serialized: bytes = parts.SerializeToString(deterministic=True)
    return serialized


def _write(message: hlo_pb2.HloComputationProto, computation: Computation) -> None:
    """Gives a computation's message the instructions of `computation`, touching no more than what differs."""
    place = {instruction.id: number for number, instruction in enumerate(computation.instructions)}
    message.instructions.sort(key=lambda written: place.get(written.id, len(place)))
    del message.instructions[len(place) :]
    for written, instruction in zip(message.instructions, computation.instructions, strict=True):
        operands, control = [o.id for o in instruction.operands], [p.id for p in instruction.control_predecessors]
        if written.operand_ids != operands:
            written.operand_ids[:] = operands
        if written.control_predecessor_ids != control:
            written.control_predecessor_ids[:] = control
    message.root_id = computation.root.id
