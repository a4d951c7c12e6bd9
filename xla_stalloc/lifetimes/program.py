"""The program as numbers: what defines and uses each value, for the live range kernel."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from xla_stalloc import _core
from xla_stalloc.hlo import Computation, Instruction
from xla_stalloc.lifetimes.buffers import Buffer
from xla_stalloc.lifetimes.dataflow import Dataflow, ShapeIndex, Value, sequential_callees

# Opcodes that hand an operand on without reading the value at this index.
_READS_ONLY_TABLE = frozenset(("get-tuple-element", "copy"))
_READS_NOTHING = frozenset(("tuple", "domain"))


class Numbering:
    """Places of instructions, computations and values in the kernels' arrays.

    Attributes:
      instructions: those of all computations that run in sequence.
      instruction: instruction id -> place in `instructions`.
      computation: computation id -> its number.
      value: value id -> place in `dataflow.values`.
    """

    def __init__(self, dataflow: Dataflow) -> None:
        """Numbers everything in the order of the module."""
        self.computations = list(dataflow.computations)
        self.computation = {c.id: number for number, c in enumerate(self.computations)}
        self.instructions = [i for c in self.computations for i in c.instructions]
        self.instruction = {i.id: number for number, i in enumerate(self.instructions)}
        self.value = {value.id: number for number, value in enumerate(dataflow.values)}

    def sequences(self) -> list[list[int]]:
        """The module's own schedule."""
        return [[self.instruction[i.id] for i in c.sequence] for c in self.computations]

    def begin_of(self, computation: Computation) -> int:
        """The moment at which a computation begins, see `Moment` in _core/live_ranges.h."""
        return -1 - 2 * self.computation[computation.id]

    def end_of(self, computation: Computation) -> int:
        """The moment at which a computation ends."""
        return -2 - 2 * self.computation[computation.id]

    def at(self, instruction: Instruction) -> int:
        """The moment until which a value stays where `instruction` puts it, if nothing reads it later."""
        if instruction is instruction.computation.root:
            return self.end_of(instruction.computation)
        return self.instruction[instruction.id]


def csr(rows: Iterable[Sequence[int]]) -> _core.Csr:
    """Packs rows of numbers for the kernels."""
    held = list(rows)
    offsets = np.zeros(len(held) + 1, np.int64)
    np.cumsum([len(row) for row in held], out=offsets[1:])
    return _core.Csr(offsets, np.fromiter(chain.from_iterable(held), np.int64, count=int(offsets[-1])))


def uses(value: Value) -> list[tuple[Instruction, int, ShapeIndex]]:
    """(user, operand number, index in the operand) of every read of the value, as XLA's HloValue::GetUses."""
    if value.uses is not None:
        return value.uses
    found = value.uses = []
    for instruction, index in value.positions:
        for user in instruction.users:
            opcode = user.opcode
            if opcode in _READS_NOTHING or (index and opcode in _READS_ONLY_TABLE):
                continue
            for number, operand in enumerate(user.operands):
                if operand is instruction:
                    found.append((user, number, index))
    return found


def build(dataflow: Dataflow, numbering: Numbering, buffers: Sequence[Buffer]) -> _core.Program:
    """The live range problem of a module."""
    module = dataflow.module
    aliased = {(parameter, index) for _, parameter, index, _ in module.input_output_alias}
    program = _core.Program()
    program.entry = numbering.computation[module.entry.id]
    program.instructions = len(numbering.instructions)
    program.buffers = len(buffers)
    program.callees = csr([numbering.computation[c.id] for c in sequential_callees(i)] for i in numbering.instructions)
    buffer_of = {value.id: number for number, buffer in enumerate(buffers) for value in buffer.values}
    program.buffer = [buffer_of[value.id] for value in dataflow.values]
    program.read_only_argument = [
        v.instruction.opcode == "parameter"
        and v.instruction.computation is module.entry
        and (v.instruction.parameter_number, v.index) not in aliased
        for v in dataflow.values
    ]
    asynchronous = _asynchronous_callers(dataflow)
    program.start = [_start(v, numbering, dataflow.callers) for v in dataflow.values]
    program.positions = csr([numbering.at(i) for i, _ in v.positions] for v in dataflow.values)
    program.uses = csr(_ends(v, numbering, asynchronous) for v in dataflow.values)
    return program


def _start(value: Value, numbering: Numbering, callers: Mapping[int, Instruction]) -> int:
    instruction = value.instruction
    if instruction.opcode == "parameter":
        return numbering.begin_of(instruction.computation)
    caller = callers.get(instruction.computation.id)
    if caller is not None and caller.opcode == "async-start":
        instruction = caller  # what it starts has no time of its own
    return numbering.instruction[instruction.id]


def _ends(value: Value, numbering: Numbering, asynchronous: dict[int, Instruction]) -> list[int]:
    """Moments of the reads of a value; what runs asynchronously keeps its values until it is done."""
    ends = []
    for user, _, _ in uses(value):
        if user.opcode == "call":
            continue  # its callee's own reads count
        if user.opcode == "while":
            user = user.called[0].parameters[0]
        ends.append(numbering.instruction[user.id])
    done = asynchronous.get(value.instruction.computation.id)
    if done is not None:
        ends.append(numbering.instruction[done.id])
    return ends


def _asynchronous_callers(dataflow: Dataflow) -> dict[int, Instruction]:
    """Computation id -> the async-done that waits for it."""
    done: dict[int, Instruction] = {}
    for id, caller in dataflow.callers.items():
        if caller.opcode != "async-start":
            continue
        while caller.opcode != "async-done":
            followers = [u for u in caller.users if u.opcode in ("async-update", "async-done")]
            if not followers:
                break
            caller = followers[0]
        else:
            done[id] = caller
    return done
