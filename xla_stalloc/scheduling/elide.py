"""Avoidable copies of donated arguments.

Copy insertion runs before scheduling. Where it cannot prove that every reader of a donated argument runs before the
output that takes over its memory is written, it inserts a copy of the whole argument: for a training step, of every
weight. With the order in hand the proof is easy: make the readers run first, and say so with control dependencies.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xla_stalloc.hlo import Computation, Instruction, Module
from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.lifetimes import Kind, Lifetimes, Value
from xla_stalloc.lifetimes.program import uses


@dataclass(frozen=True)
class AvoidableCopy:
    """A copy that is not needed when `readers` run before `writers`.

    Attributes:
      copy: the copy.
      argument: the parameter that it copies.
      readers: of the copy or the argument; those that also write the output do so in place and are not listed.
      writers: what first writes to the argument's memory.
    """

    copy: Instruction
    argument: Instruction
    readers: tuple[Instruction, ...]
    writers: tuple[Instruction, ...]


def avoidable_copies(lifetimes: Lifetimes) -> list[AvoidableCopy]:
    """Copies of donated arguments of the entry computation that an order can make unnecessary, all at once."""
    entry = lifetimes.module.entry
    found = list(_candidates(lifetimes))
    while True:
        written = _descendants(entry, {writer.id for copy in found for writer in copy.writers})
        kept = [copy for copy in found if not any(reader.id in written for reader in copy.readers)]
        if len(kept) == len(found):
            return found
        found = kept  # fewer writers, so fewer instructions that depend on one


def _candidates(lifetimes: Lifetimes) -> Iterator[AvoidableCopy]:
    entry = lifetimes.module.entry
    set_of = {value.id: buffer for buffer in lifetimes.buffers for value in buffer.values}
    for copy in entry.instructions:
        if copy.opcode != "copy" or copy.control_predecessors or copy.operands[0].opcode != "parameter":
            continue
        argument = copy.operands[0]
        if copy.shape != argument.shape or copy.shape.is_tuple:
            continue
        (source,), (copied,) = lifetimes.dataflow.at(argument), lifetimes.dataflow.at(copy)
        shared = set_of[source.id]
        if shared.kind is not Kind.DONATED or set_of[copied.id].values not in ((copied,), shared.values):
            continue
        others = [value for value in shared.values if value not in (source, copied)]
        writers = {value.instruction.id: value.instruction for value in others}
        if not others or any(writer.computation is not entry for writer in writers.values()):
            continue
        readers = _readers(lifetimes, (source, copied), copy, others)
        if readers is not None:
            yield AvoidableCopy(copy, argument, readers, tuple(writers.values()))


def _readers(
    lifetimes: Lifetimes, values: tuple[Value, ...], copy: Instruction, others: list[Value]
) -> tuple[Instruction, ...] | None:
    """What must run before the writers; None if a writer reads in a way that its own output would disturb."""
    readers: dict[int, Instruction] = {}
    for value in values:
        for user, number, index in uses(value):
            reader = _in_entry(lifetimes, user)
            if reader is copy:
                continue
            written = [other for other in others if other.instruction is reader]
            if not written:
                readers[reader.id] = reader
            elif reader is not user or not all(
                lifetimes.sharing.allowed(user.operands[number], index, user, other.index) for other in written
            ):
                return None
    return tuple(readers.values())


def _in_entry(lifetimes: Lifetimes, instruction: Instruction) -> Instruction:
    """The instruction of the entry computation that `instruction` is, or that it runs inside of."""
    while instruction.computation is not lifetimes.module.entry:
        instruction = lifetimes.dataflow.callers[instruction.computation.id]
    return instruction


def _descendants(computation: Computation, roots: set[int]) -> set[int]:
    """Ids of the roots and of what depends on them."""
    reached = set(roots)
    for instruction in computation.instructions:  # operands come before users
        before: Iterable[Instruction] = (*instruction.operands, *instruction.control_predecessors)
        if any(other.id in reached for other in before):
            reached.add(instruction.id)
    return reached


def without_copies(module: Module, copies: list[AvoidableCopy]) -> Module:
    """The module without these copies, with the control dependencies that make that right, still in a valid order.

    Args:
      module: the module for whose lifetimes the copies were found, with or without optimization barriers.
      copies: as `avoidable_copies` found them, or some of them.
    """
    proto = hlo_pb2.HloModuleProto()
    proto.CopyFrom(module.proto)
    stands_for = {avoidable.copy.id: avoidable.argument.id for avoidable in copies}
    entry = next(c for c in proto.computations if c.id == proto.entry_computation_id)
    by_id = {instruction.id: instruction for instruction in entry.instructions}
    for instruction in entry.instructions:
        if any(operand in stands_for for operand in instruction.operand_ids):
            instruction.operand_ids[:] = [stands_for.get(operand, operand) for operand in instruction.operand_ids]
        if any(before in stands_for for before in instruction.control_predecessor_ids):
            kept = [before for before in instruction.control_predecessor_ids if before not in stands_for]
            instruction.control_predecessor_ids[:] = kept
    for avoidable in copies:
        for writer in avoidable.writers:
            message = by_id[writer.id]
            present = set(message.control_predecessor_ids) | set(message.operand_ids)
            message.control_predecessor_ids.extend(r.id for r in avoidable.readers if r.id not in present)
    _sort(entry, set(stands_for))
    sequence = proto.schedule.sequences[entry.id]
    sequence.instruction_ids[:] = _valid(entry, [id for id in sequence.instruction_ids if id not in stands_for])
    return Module(proto, module.source, platform=module.platform, num_partitions=module.num_partitions)


def _sort(computation: hlo_pb2.HloComputationProto, gone: set[int]) -> None:
    """Drops `gone` and moves instructions so that each stands behind all that it depends on."""
    messages = {i.id: i for i in computation.instructions if i.id not in gone}
    order = _valid(computation, list(messages))
    copies = [hlo_pb2.HloInstructionProto.FromString(messages[id].SerializeToString()) for id in order]
    del computation.instructions[:]
    computation.instructions.extend(copies)


def _valid(computation: hlo_pb2.HloComputationProto, wanted: list[int]) -> list[int]:
    """The order closest to `wanted` in which everything stands behind what it depends on: depth first from it."""
    needs = {i.id: (*i.operand_ids, *i.control_predecessor_ids) for i in computation.instructions}
    order: dict[int, None] = {}
    for start in wanted:
        stack = [start]
        while stack:
            id = stack[-1]
            missing = [other for other in needs[id] if other not in order] if id not in order else []
            if missing:
                stack.extend(missing)
            else:
                order.setdefault(stack.pop())
    return list(order)
