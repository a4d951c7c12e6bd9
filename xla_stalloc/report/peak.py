"""What is live when the most temporary bytes are live."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xla_stalloc.hlo import Instruction, Module, ShapeIndex
from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.lifetimes import Assignment, Kind, Lifetimes, Value
from xla_stalloc.report.figures import is_temp
from xla_stalloc.report.kinds import Kinds
from xla_stalloc.report.model import LiveBuffer
from xla_stalloc.report.sources import source_of

_KINDS = {Kind.ARGUMENT: "argument", Kind.DONATED: "donated", Kind.OUTPUT: "output", Kind.CONSTANT: "constant"}
_ALLOC, _FREE, _SHARE = (hlo_pb2.HeapSimulatorTrace.Event.Kind.Value(name) for name in ("ALLOC", "FREE", "SHARE_WITH"))


@dataclass(frozen=True)
class Peak:
    """The moment at which the most bytes are live inside the temp allocation.

    Attributes:
        bytes: live in the temp allocation; None if not known exactly.
        at: the instruction that runs then; None if the source's trace names one that is not there.
        live: everything that is live then, largest first.
    """

    bytes: int | None
    at: Instruction | None
    live: tuple[LiveBuffer, ...]


def from_emulation(lifetimes: Lifetimes, assignment: Assignment, known: Kinds | None = None) -> Peak:
    """The peak of the emulated assignment; the end of a program that has no temps, since all its outputs live there."""
    schedule = lifetimes.schedule
    time = assignment.peak_time if assignment.peak_live_bytes else len(schedule)
    at = schedule[time] if time < len(schedule) else lifetimes.module.entry.root
    known = known or Kinds(lifetimes)
    temps = (_of_value(value, "temp", known) for value in assignment.live_at_peak)
    around = _around(lifetimes, assignment, time, known)
    return Peak(assignment.peak_live_bytes, at, _largest_first([*temps, *around]))


def _around(lifetimes: Lifetimes, assignment: Assignment, time: int, known: Kinds) -> Iterator[LiveBuffer]:
    """What is live outside the heap of temps."""
    for buffer in lifetimes.buffers:
        host = assignment.reused.get(buffer)
        if (host is None and buffer.kind not in _KINDS) or buffer.memory_space != 0:
            continue
        for value in buffer.values:
            start, end = lifetimes.live_range(value)
            if start <= time <= end:
                inside = "" if host is None else _name(host.values[0].instruction, host.values[0].index)
                yield _of_value(value, _KINDS.get(buffer.kind, "temp"), known, inside)
                break


def from_traces(module: Module, lifetimes: Lifetimes | None, known: Kinds | None = None) -> Peak | None:
    """The peak of XLA's own heap trace, if the source has it; sizes are those of the shapes, without padding.

    What is live around it is known if `lifetimes` are.
    """
    assignment = module.buffer_assignment
    trace = None if assignment is None else _main_trace(assignment)
    if assignment is None or trace is None:
        return None
    place = {b.id: (b.defined_at.instruction_id, tuple(b.defined_at.shape_index)) for b in assignment.logical_buffers}
    if any(event.buffer_id not in place for event in trace.events):
        return None
    size = {b.id: _unpadded(module, b) for b in assignment.logical_buffers}
    owner: dict[int, int] = {}  # buffer -> the one that brought the memory
    live: dict[int, dict[int, None]] = {}  # owner -> buffers that live in its memory, latest last
    now = peak = 0
    last, at_peak = trace.events[0].buffer_id, list[int]()
    for event in trace.events:
        id = event.buffer_id
        if event.kind == _FREE:
            inside = live[owner[id]]
            inside.pop(id, None)
            if not inside:
                now -= size[owner[id]]
                del live[owner[id]]
            continue
        owner[id] = owner.get(event.share_with_canonical_id, id) if event.kind == _SHARE else id
        if owner[id] not in live:
            live[owner[id]] = {}
            now += size[owner[id]]
        live[owner[id]][id] = None
        if now > peak:
            peak, last, at_peak = now, id, [next(reversed(inside)) for inside in live.values()]
    known = known or (Kinds(lifetimes) if lifetimes else None)
    values = {(value.instruction.id, value.index): value for value in lifetimes.values} if lifetimes else {}
    temps = [
        _of_value(values[place[id]], "temp", known)
        if known and place[id] in values
        else _describe(module.instructions_by_id[place[id][0]], place[id][1], "temp")
        for id in at_peak
        if place[id][0] in module.instructions_by_id
    ]
    at = module.instructions_by_id.get(place[last][0])
    around = [] if lifetimes is None or at is None or not known else _around_by_allocation(module, lifetimes, at, known)
    return Peak(peak, at, _largest_first([*temps, *around]))


def _main_trace(assignment: hlo_pb2.BufferAssignmentProto) -> hlo_pb2.HeapSimulatorTrace | None:
    """The trace of the largest temp allocation in main memory."""
    # Which allocation a trace is of can be told by its buffers only: the index in the trace is from before XLA combines
    # allocations.
    size_around = {
        assigned.logical_buffer_id: allocation.size
        for allocation in assignment.buffer_allocations
        if allocation.color == 0 and is_temp(allocation)
        for assigned in allocation.assigned
    }
    traces = [
        trace
        for trace in assignment.heap_simulator_traces
        if trace.whole_module_simulation and trace.events and trace.events[0].buffer_id in size_around
    ]
    return max(traces, key=lambda trace: size_around[trace.events[0].buffer_id], default=None)


def _unpadded(module: Module, buffer: hlo_pb2.LogicalBufferProto) -> int:
    instruction = module.instructions_by_id.get(buffer.defined_at.instruction_id)
    size: int = buffer.size
    return size if instruction is None else min(size, instruction.shape.at(buffer.defined_at.shape_index).byte_size)


def _around_by_allocation(module: Module, lifetimes: Lifetimes, at: Instruction, known: Kinds) -> Iterator[LiveBuffer]:
    """What is live outside the temp allocation while `at` runs, by XLA's own allocations."""
    assert module.buffer_assignment is not None
    time = lifetimes.schedule.index(at)
    kinds = {value.id: _KINDS.get(buffer.kind, "temp") for buffer in lifetimes.buffers for value in buffer.values}
    values = {(value.instruction.id, value.index): value for value in lifetimes.values}
    place = {
        b.id: (b.defined_at.instruction_id, tuple(b.defined_at.shape_index))
        for b in module.buffer_assignment.logical_buffers
    }
    for allocation in module.buffer_assignment.buffer_allocations:
        is_held = allocation.is_entry_computation_parameter or allocation.maybe_live_out or allocation.is_constant
        if allocation.color != 0 or allocation.is_tuple or not is_held:
            continue
        inside = [
            values[place[a.logical_buffer_id]] for a in allocation.assigned if place[a.logical_buffer_id] in values
        ]
        live = (value for value in inside if _is_live(lifetimes, value, time) and not value.shape.is_tuple)
        if value := next(live, None):
            host = _name(inside[0].instruction, inside[0].index) if kinds[value.id] == "temp" else ""
            yield _of_value(value, kinds[value.id], known, host)


def _is_live(lifetimes: Lifetimes, value: Value, time: int) -> bool:
    start, end = lifetimes.live_range(value)
    return start <= time <= end


def _largest_first(live: Iterable[LiveBuffer]) -> tuple[LiveBuffer, ...]:
    return tuple(sorted((b for b in live if b.bytes), key=lambda buffer: (-buffer.bytes, buffer.name)))


def _of_value(value: Value, kind: str, known: Kinds, inside: str = "") -> LiveBuffer:
    return dataclasses.replace(
        _describe(value.instruction, value.index, kind, inside),
        role=str(known.role(value)),
        phase=str(known.phase(value.instruction)),
        layer=known.layer(value.instruction),
    )


def _describe(instruction: Instruction, index: ShapeIndex, kind: str, inside: str = "") -> LiveBuffer:
    shape = instruction.shape.at(index)
    return LiveBuffer(
        name=_name(instruction, index),
        bytes=shape.byte_size,
        shape=str(shape),
        source=source_of(instruction, index),
        kind=kind,
        op_name=instruction.op_name,
        inside=inside,
    )


def _name(instruction: Instruction, index: ShapeIndex) -> str:
    return instruction.name + (f"{{{','.join(map(str, index))}}}" if index else "")
