"""Buffers: values that must share memory, and what they are to the program."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from xla_stalloc.hlo import Computation
from xla_stalloc.lifetimes.dataflow import Dataflow, Value, defined_at


class Kind(IntEnum):
    """What a must-alias buffer is to the program.

    A TUPLE is a table of pointers of its own: XLA gives it memory that nothing else uses. It lies beside the heap in
    the temp allocation, but for that of the program's result (an OUTPUT_TUPLE). THREAD_LOCAL is what a computation
    needs that is applied per element (a reducer, a comparator): each thread has its own, on its stack.
    """

    ARGUMENT = 0
    DONATED = 1
    OUTPUT = 2
    TEMP = 3
    CONSTANT = 4
    TUPLE = 5
    OUTPUT_TUPLE = 6
    THREAD_LOCAL = 7


@dataclass(frozen=True, slots=True)
class Buffer:
    """Values that must share memory.

    Attributes:
      values: in order of definition; they live one after the other.
      kind: what the buffer is to the program.
      bytes: of its largest value, without padding.
      memory_space: XLA's colour; 0 is the device's main memory.
    """

    values: tuple[Value, ...]
    kind: Kind
    bytes: int
    memory_space: int


def applied_buffers(computations: Iterable[Computation]) -> list[Buffer]:
    """The buffers of computations that are applied per element, constants among them; each is an allocation."""
    instructions = (instruction for computation in computations for instruction in computation.instructions)
    defined = ((i, index, shape) for i in instructions for index, shape in defined_at(i))
    return [
        Buffer(
            values=(Value(id, i, index, shape, is_phi=False),),
            kind=Kind.CONSTANT if i.opcode == "constant" else Kind.THREAD_LOCAL,
            bytes=shape.byte_size,
            memory_space=shape.memory_space,
        )
        for id, (i, index, shape) in enumerate(defined)
    ]


def group(dataflow: Dataflow, sets: Iterable[list[Value]]) -> list[Buffer]:
    """Buffers from the must-alias sets of values."""
    module = dataflow.module
    aliased = {(parameter, index) for _, parameter, index, _ in module.input_output_alias}
    live_out = {value.id for values in dataflow.sets[module.entry.root.id].values() for value in values}

    def kind(values: list[Value]) -> Kind:
        for value in values:
            instruction = value.instruction
            if instruction.opcode == "constant":
                return Kind.CONSTANT
            if instruction.opcode == "parameter" and instruction.computation is module.entry:
                is_aliased = (instruction.parameter_number, value.index) in aliased
                return Kind.DONATED if is_aliased else Kind.ARGUMENT
        is_live_out = any(value.id in live_out for value in values)
        if any(value.shape.is_tuple for value in values):
            return Kind.OUTPUT_TUPLE if is_live_out else Kind.TUPLE
        return Kind.OUTPUT if is_live_out else Kind.TEMP

    return [
        Buffer(tuple(values), kind(values), max(v.bytes for v in values), values[0].shape.memory_space)
        for values in sets
    ]
