"""Avoidable copies of donated arguments.

Copy insertion runs before scheduling. Where it cannot prove that every reader of a donated argument runs before the
output that takes over its memory is written, it inserts a copy of the whole argument: for a training step, of every
weight. With the order in hand the proof is easy: make the readers run first, and say so with control dependencies.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xla_stalloc.hlo import Computation, Instruction
from xla_stalloc.hlo.rewrite import Edit
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
        if any(instruction is entry.root for instruction, _ in copied.positions):
            continue  # a result of its own, still needed behind the last instruction
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
                lifetimes.sharing.allowed(user.operands[number], index, user, other.index, number) for other in written
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


def edit_for(copies: list[AvoidableCopy]) -> Edit:
    """What removes these copies from the entry computation, with the control dependencies that make that right."""
    before: dict[int, dict[int, None]] = {}
    for copy in copies:
        for writer in copy.writers:
            before.setdefault(writer.id, {}).update(dict.fromkeys(reader.id for reader in copy.readers))
    return Edit(
        stands_for={copy.copy.id: copy.argument.id for copy in copies},
        control_predecessors={writer: list(readers) for writer, readers in before.items()},
    )
