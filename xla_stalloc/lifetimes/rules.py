"""What may share memory with what, as numbers for the assignment kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from xla_stalloc import _core
from xla_stalloc.lifetimes.buffers import Buffer, Kind
from xla_stalloc.lifetimes.dataflow import Dataflow, Value
from xla_stalloc.lifetimes.program import Numbering, csr
from xla_stalloc.lifetimes.sharing import Sharing

_ROLES = {Kind.DONATED: 1, Kind.OUTPUT: 2, Kind.TEMP: 3}  # `Role` in _core/assignment.h; everything else is fixed


def reuses(dataflow: Dataflow, numbering: Numbering, buffers: Sequence[Buffer], sharing: Sharing) -> list[list[int]]:
    """Per value, by number: the values whose memory it may take over in the heap where they end, in XLA's order."""
    alone = {buffer.values[0].id for buffer in buffers if len(buffer.values) == 1}
    return [
        _reuses(dataflow, value, sharing, numbering, alone) if value.id in alone else [] for value in dataflow.values
    ]


@dataclass(frozen=True)
class Heirs:
    """Which values may follow which in one allocation, by number.

    Attributes:
      heirs: per value, those that may take over its memory where it ends.
      positions: per value, for each heir the number of the position of the value at which it may.
      copied: per value, those that it is a copy of: they never lie in one allocation.
    """

    heirs: list[list[int]]
    positions: list[list[int]]
    copied: list[list[int]]


def heirs(dataflow: Dataflow, numbering: Numbering, buffers: Sequence[Buffer], sharing: Sharing) -> Heirs:
    """Finds the heirs of all values whose memory may be used by others at all."""
    defined: dict[int, list[Value]] = {}
    for value in dataflow.values:
        defined.setdefault(value.instruction.id, []).append(value)
    found = Heirs([], [], [[] for _ in dataflow.values])
    reusable = {value.id for buffer in buffers if buffer.kind in _ROLES for value in buffer.values}
    for value in dataflow.values:
        mine: list[int] = []
        places: list[int] = []
        found.heirs.append(mine)
        found.positions.append(places)
        if value.id not in reusable:
            continue
        for place, (instruction, index) in enumerate(value.positions):
            for user in instruction.users:
                if user.opcode == "copy":
                    if () in dataflow.sets[user.id]:
                        found.copied[numbering.value[dataflow.at(user)[0].id]].append(numbering.value[value.id])
                    continue
                for heir in defined.get(user.id, ()):
                    if heir.bytes == value.bytes and sharing.allowed(instruction, index, user, heir.index):
                        mine.append(numbering.value[heir.id])
                        places.append(place)
    return found


def build(dataflow: Dataflow, buffers: Sequence[Buffer], heirs: Heirs, reuses: list[list[int]]) -> _core.SharingRules:
    """The sharing rules of a module in the kernel's form."""
    rules = _core.SharingRules()
    rules.size = [buffer.bytes for buffer in buffers]
    rules.color = [buffer.memory_space for buffer in buffers]
    rules.role = [_ROLES.get(buffer.kind, 0) for buffer in buffers]
    number_of = {value.id: number for number, buffer in enumerate(buffers) for value in buffer.values}
    rules.operands = csr(_operand_buffers(dataflow, buffer.values, number_of) for buffer in buffers)
    rules.order = _assignment_order(dataflow, buffers)
    rules.heirs = csr(heirs.heirs)
    rules.heirs_positions = csr(heirs.positions)
    rules.copied = csr(heirs.copied)
    rules.reuses = csr(reuses)
    return rules


def _operand_buffers(dataflow: Dataflow, values: Sequence[Value], number_of: dict[int, int]) -> list[int]:
    """Buffers of the operands of what the buffer holds: XLA tries to reuse their allocations first."""
    tried: dict[int, None] = {}
    for value in values:
        if value.index == () and not value.shape.is_tuple:
            for operand in value.instruction.operands:
                tried.update(dict.fromkeys(number_of[v.id] for v in dataflow.at(operand)))
    return list(tried)


def _reuses(dataflow: Dataflow, value: Value, sharing: Sharing, numbering: Numbering, alone: set[int]) -> list[int]:
    """Values whose memory `value` may take over in the heap: they are direct operands that nothing aliases."""
    instruction = value.instruction
    if instruction.opcode in ("copy", "parameter") or (value.is_phi and instruction.opcode != "conditional"):
        return []
    found = []
    for operand in instruction.operands:
        for candidate in dataflow.at(operand):
            defining = candidate.instruction
            if (
                candidate.id in alone
                and defining in instruction.operands
                and sharing.allowed(defining, candidate.index, instruction, value.index)
            ):
                found.append(numbering.value[candidate.id])
    return list(dict.fromkeys(found))


def _assignment_order(dataflow: Dataflow, buffers: Sequence[Buffer]) -> list[int]:
    """Largest first, outputs before others, then by the place of the first instruction in callers-first post order."""
    entry_root = dataflow.sets[dataflow.module.entry.root.id]
    live_out = {value.id for values in entry_root.values() for value in values}
    place: dict[int, int] = {}
    for computation in _callers_first(dataflow):
        for instruction in dataflow.order[computation]:
            place[instruction.id] = len(place)

    def key(number: int) -> tuple[int, bool, int]:
        values = buffers[number].values
        is_live_out = any(value.id in live_out for value in values)
        return -buffers[number].bytes, not is_live_out, min(place[value.instruction.id] for value in values)

    return sorted(range(len(buffers)), key=key)


def _callers_first(dataflow: Dataflow) -> list[int]:
    """Computation ids in the reverse of the order in which XLA's call graph visits them (callees first)."""
    return [c.id for c in reversed(list(dataflow.computations))]
