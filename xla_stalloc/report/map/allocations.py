"""What lies where: the allocations of a program in every memory, as XLA decided or as it is emulated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.lifetimes import Assignment, Kind, Lifetimes, Value
from xla_stalloc.report.figures import is_temp

TEMPS = "temps"
BANDS = (TEMPS, "state", "arguments", "outputs", "constants")
"""In the device's main memory, from the bottom of a map; state is what arguments and outputs share."""

_MAIN_MEMORY = 0
_KINDS = {
    Kind.ARGUMENT: "arguments",
    Kind.DONATED: "state",
    Kind.OUTPUT: "outputs",
    Kind.OUTPUT_TUPLE: "outputs",
    Kind.CONSTANT: "constants",
}


class Place(NamedTuple):
    """A value in an allocation: offset and size in bytes, padding included."""

    value: Value
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that the program holds from its start to its end.

    Attributes:
        band: what it is, one of `BANDS`, or `memory space N`.
        size: bytes.
        places: what lives in it, one after the other or side by side.
    """

    band: str
    size: int
    places: tuple[Place, ...]


def from_xla(assignment: hlo_pb2.BufferAssignmentProto, lifetimes: Lifetimes) -> list[Allocation]:
    """XLA's own allocations, without those that each thread has on its stack."""
    values = {(value.instruction.id, value.index): value for value in lifetimes.values}
    defined = {b.id: (b.defined_at.instruction_id, tuple(b.defined_at.shape_index)) for b in assignment.logical_buffers}
    found = []
    for allocation in assignment.buffer_allocations:
        if allocation.is_thread_local:
            continue
        alignment = lifetimes.alignment if _band(allocation) == TEMPS and lifetimes.module.platform != "tpu" else 1
        places = [
            _place(values[defined[a.logical_buffer_id]], a.offset, a.size, alignment, allocation.size)
            for a in allocation.assigned
            if defined.get(a.logical_buffer_id) in values
        ]
        found.append(Allocation(_band(allocation), allocation.size, tuple(places)))
    return found


def from_emulation(lifetimes: Lifetimes, assignments: Mapping[int, Assignment]) -> list[Allocation]:
    """What XLA's buffer assignment would come to.

    Args:
        lifetimes: of the module.
        assignments: by memory space.
    """
    found = [
        Allocation(
            TEMPS if space == _MAIN_MEMORY else f"memory space {space}",
            assignment.temp_bytes,
            tuple(
                _place(value, offset, value.bytes, lifetimes.alignment, assignment.temp_bytes)
                for value, offset in assignment.offsets.items()
            ),
        )
        for space, assignment in assignments.items()
    ]
    guests = defaultdict(list)
    for assignment in assignments.values():
        for guest, host in assignment.reused.items():
            guests[host].append(guest)
    for buffer in lifetimes.buffers:
        if buffer.kind in _KINDS and buffer.memory_space == _MAIN_MEMORY:
            inside = [value for part in (buffer, *guests[buffer]) for value in part.values]
            places = tuple(Place(value, 0, value.bytes) for value in inside)
            found.append(Allocation(_KINDS[buffer.kind], buffer.bytes, places))
    return found


def memory_spaces(lifetimes: Lifetimes) -> Iterator[int]:
    """The memory spaces that a module uses, the main one first."""
    yield from sorted({_MAIN_MEMORY, *(buffer.memory_space for buffer in lifetimes.buffers)})


def _place(value: Value, offset: int, size: int, alignment: int, end: int) -> Place:
    """What is left up to the next multiple of the alignment is lost, too."""
    padded = -(-size // alignment) * alignment
    return Place(value, offset, min(padded, end - offset))


def _band(allocation: hlo_pb2.BufferAllocationProto) -> str:
    if allocation.color != _MAIN_MEMORY:
        return f"memory space {allocation.color}"
    if is_temp(allocation):
        return TEMPS
    if allocation.is_entry_computation_parameter:
        return "state" if allocation.maybe_live_out else "arguments"
    return "outputs" if allocation.maybe_live_out else "constants"
