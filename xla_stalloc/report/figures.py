"""Bytes of arguments, outputs, aliases and temps, as XLA's `Compiled.memory_analysis()` counts them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from xla_stalloc.hlo import Module, Shape
from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.lifetimes import Assignment, Kind, Lifetimes

_MAIN_MEMORY = 0


@dataclass(frozen=True)
class Figures:
    """Bytes in the device's main memory; `temp` is None if it is not known. See `ModuleReport` for the rest."""

    origin: str
    argument: int
    output: int
    alias: int
    temp: int | None
    constant: int = 0
    other_memory: dict[str, int] = field(default_factory=dict)

    @property
    def peak(self) -> int | None:
        """Arguments + outputs - aliases + temps."""
        return None if self.temp is None else self.argument + self.output - self.alias + self.temp


def from_xla(assignment: hlo_pb2.BufferAssignmentProto) -> Figures:
    """XLA's own figures."""
    found: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for allocation in assignment.buffer_allocations:
        is_parameter = allocation.is_entry_computation_parameter
        if allocation.is_thread_local:
            continue  # inside the functions applied per element: a few bytes on the stack
        if allocation.color != _MAIN_MEMORY:
            other[str(allocation.color)] += allocation.size
            continue
        found["argument"] += allocation.size * is_parameter
        found["output"] += allocation.size * allocation.maybe_live_out
        found["alias"] += allocation.size * (is_parameter and allocation.maybe_live_out)
        found["constant"] += allocation.size * allocation.is_constant
        found["temp"] += allocation.size * is_temp(allocation)
    return _figures("xla", found, dict(sorted(other.items())))


def is_temp(allocation: hlo_pb2.BufferAllocationProto) -> bool:
    """Whether an allocation is there only while the program runs."""
    is_held = allocation.is_entry_computation_parameter or allocation.maybe_live_out or allocation.is_constant
    return not (is_held or allocation.is_thread_local)


def from_emulation(lifetimes: Lifetimes, assignment: Assignment) -> Figures:
    """What XLA's buffer assignment would come to."""
    found: Counter[str] = Counter()
    root = lifetimes.dataflow.sets[lifetimes.module.entry.root.id]
    live_out = {value.id for values in root.values() for value in values}
    for buffer in lifetimes.buffers:
        if buffer.memory_space != _MAIN_MEMORY:
            continue
        is_argument = buffer.kind in (Kind.ARGUMENT, Kind.DONATED)
        is_output = any(value.id in live_out for value in buffer.values)
        found["argument"] += buffer.bytes * is_argument
        found["output"] += buffer.bytes * is_output
        found["alias"] += buffer.bytes * (is_argument and is_output)
        found["constant"] += buffer.bytes * (buffer.kind is Kind.CONSTANT)
    found["temp"] = assignment.temp_bytes
    return _figures("emulated", found, {})


def _figures(origin: str, found: Counter[str], other_memory: dict[str, int]) -> Figures:
    return Figures(
        origin, found["argument"], found["output"], found["alias"], found["temp"], found["constant"], other_memory
    )


def from_shapes(module: Module) -> Figures:
    """What the module's signature tells, where its memory is not modelled."""
    alias = sum(module.entry.root.shape.at(output).byte_size for output, *_ in module.input_output_alias)
    arguments = sum(_total(parameter.shape) for parameter in module.entry.parameters)
    return Figures("emulated", arguments, _total(module.entry.root.shape), alias, None)


def _total(shape: Shape) -> int:
    return sum(part.byte_size for _, part in shape.subshapes())
