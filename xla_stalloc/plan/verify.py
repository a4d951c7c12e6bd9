"""Is the planned module the same program? Checked anew from both modules, sharing no code with the solvers.

XLA itself checks operands and control dependencies. What it does not check, and what would give wrong numbers or a
hanging job in silence, is checked here: values overwritten before their last read, the order of collectives and side
effects, the work that hides asynchronous transfers, and that nothing else about the module has changed.
"""

from collections.abc import Mapping

from google.protobuf.message import Message

from xla_stalloc.hlo import Computation, Instruction, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.lifetimes import Lifetimes, Value, of
from xla_stalloc.lifetimes.program import uses

_ORDERED_PREFIXES = ("send", "recv", "infeed", "outfeed")
_COLLECTIVE_PREFIXES = ("all-", "reduce-scatter", "collective-", "ragged-all-to-all")


class PlanError(ValueError):
    """The planned module is not the same program, or could compute something else."""


def verify(stock: Module, serialized: bytes, pin_collectives: bool = True) -> None:
    """Checks that the serialized HloModuleProto may take the place of `stock`.

    Args:
      stock: as XLA scheduled it.
      serialized: the plan.
      pin_collectives: whether collectives must have kept their order.

    Raises:
      HloError: it is no complete module in a valid order.
      PlanError: says what is wrong, and where.
    """
    planned = Module.from_bytes(serialized, "planned module", platform=stock.platform, like=stock)
    if [c.id for c in stock.computations] != [c.id for c in planned.computations]:
        raise PlanError(f"{planned.name}: the planned module does not have the same computations")
    _same_fields(planned.name, stock.proto, planned.proto, "computations", "schedule")
    for before, after in zip(stock.computations, planned.computations, strict=True):
        if before is after:
            continue
        _same_fields(after.name, before.proto, after.proto, "instructions", "root_id")
        _same_instructions(stock, before, after)
        if before.is_scheduled != after.is_scheduled:
            raise PlanError(f"{after.name}: the planned module has a schedule for it where stock has none, or lacks it")
        if before.is_scheduled:
            _same_order_of_effects(before, after, pin_collectives)
            if stock.platform not in ("cuda", "rocm"):  # there, what hides a transfer is a matter of time only
                _same_async_windows(before, after)
    _nothing_overwritten(of(without_barriers(planned)))


def _same_fields(name: str, before: Message, after: Message, *may_differ: str) -> None:
    old, new = ({f.name: v for f, v in m.ListFields() if f.name not in may_differ} for m in (before, after))
    for field in sorted({*old, *new}):
        if old.get(field) != new.get(field):
            raise PlanError(f"{name}: the planned module changes its {field}")


def _same_instructions(stock: Module, before: Computation, after: Computation) -> None:
    """Equal instructions, except that copies of donated arguments may be replaced by the arguments themselves."""
    kept = {i.id: i for i in after.instructions}
    replaced = {i.id: _elided_argument(stock, i) for i in before.instructions if i.id not in kept}
    if len(kept) + len(replaced) != len(before.instructions):
        raise PlanError(f"{after.name}: the planned module has instructions that are not in stock's")
    if replaced.get(before.root.id, before.root.id) != after.root.id:
        raise PlanError(f"{after.name}: the planned module has another root, {after.root.name!r}")
    for old in before.instructions:
        new = kept.get(old.id)
        if new is None:
            continue
        if [o.id for o in new.operands] != [replaced.get(o.id, o.id) for o in old.operands]:
            raise PlanError(f"{new.name}: the planned module gives it other operands")
        missing = {p.id for p in old.control_predecessors} - set(replaced) - {p.id for p in new.control_predecessors}
        if missing:
            raise PlanError(f"{new.name}: the planned module drops a control dependency")
        if old.proto != new.proto and _rest(old) != _rest(new):
            raise PlanError(f"{new.name}: the planned module changes it")


def _elided_argument(stock: Module, instruction: Instruction) -> int:
    """Id of the donated argument that a missing instruction copied."""
    is_copy = instruction.opcode == "copy" and instruction.computation is stock.entry
    argument = instruction.operands[0] if instruction.operands else None
    if not is_copy or argument is None or argument.opcode != "parameter" or argument.shape != instruction.shape:
        raise PlanError(f"{instruction.name}: missing from the planned module, and no plain copy of an argument")
    if argument.parameter_number not in {parameter for _, parameter, _, _ in stock.input_output_alias}:
        raise PlanError(f"{instruction.name}: missing from the planned module, but its argument is not donated")
    return argument.id


def _rest(instruction: Instruction) -> bytes:
    """The instruction's message without the fields that a plan may change."""
    message = hlo_pb2.HloInstructionProto()
    message.CopyFrom(instruction.proto)
    message.ClearField("operand_ids")
    message.ClearField("control_predecessor_ids")
    serialized: bytes = message.SerializeToString(deterministic=True)
    return serialized


def _has_effect(instruction: Instruction, collectives: bool) -> bool:
    opcode = instruction.opcode
    ordered = _ORDERED_PREFIXES + _COLLECTIVE_PREFIXES if collectives else _ORDERED_PREFIXES
    if opcode.startswith(ordered) or opcode == "rng-get-and-update-state" or instruction.has_side_effect:
        return True
    if opcode in ("copy-start", "copy-done"):
        shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
        if any(part.memory_space == 5 for shape in shapes for _, part in shape.subshapes()):  # 5: the host's memory
            return True
    if opcode == "fusion":
        return False
    return any(_has_effect(inner, collectives) for called in instruction.called for inner in called.instructions)


def _same_order_of_effects(before: Computation, after: Computation, collectives: bool) -> None:
    stock, planned = ([i.id for i in c.sequence if _has_effect(i, collectives)] for c in (before, after))
    for old, new in zip(stock, planned, strict=True):
        if old != new:
            raise PlanError(f"{after.name}: the planned order moves a collective or side effect before another one")


def _same_async_windows(before: Computation, after: Computation) -> None:
    place = {instruction.id: step for step, instruction in enumerate(after.sequence)}
    for step, start in enumerate(before.sequence):
        if not start.opcode.endswith("-start"):
            continue
        for done in (user for user in start.users if user.opcode.endswith("-done")):
            for inside in before.sequence[step + 1 : before.sequence.index(done)]:
                if inside.id in place and not place[start.id] < place[inside.id] < place[done.id]:
                    raise PlanError(f"{inside.name}: no longer hides the transfer of {start.name!r}")


def _nothing_overwritten(lifetimes: Lifetimes) -> None:
    """Values that must share memory: each is read for the last time before the next one is written."""
    time = {instruction.id: step for step, instruction in enumerate(lifetimes.schedule)}
    for buffer in lifetimes.buffers:
        lives = sorted((*lifetimes.live_range(value), value.id, value) for value in buffer.values)
        for place, (*_, earlier) in enumerate(lives):
            for *_, later in lives[place + 1 :]:
                # Phis and parameters name memory that others have written; those are in the buffer themselves.
                if not later.is_phi and later.instruction.opcode != "parameter":
                    _read_before(lifetimes, time, earlier, later)


def _read_before(lifetimes: Lifetimes, time: Mapping[int, int], earlier: Value, later: Value) -> None:
    writer = later.instruction
    for reader, number, index in uses(earlier):
        if reader is writer:
            in_place = (number, index, later.index) in lifetimes.in_place.pairs(reader)
            too_late = not in_place and not lifetimes.sharing.allowed(
                reader.operands[number], index, reader, later.index, number
            )
        elif reader.opcode in ("call", "async-start"):
            continue  # its callee's own reads count
        elif reader.opcode in ("async-update", "async-done") and _runs_in(lifetimes, writer, reader):
            continue  # it waits for the writer, and reads the result
        else:
            # A loop reads its initial values when it starts: before its body, which stands before it in the schedule.
            starts = reader.called[0].parameters[0] if reader.opcode == "while" else reader
            too_late = time[starts.id] > time[writer.id] and not _exclusive(lifetimes, reader, writer)
        if too_late:
            raise PlanError(
                f"{reader.name}: reads {earlier.instruction.name!r} when {writer.name!r} may have overwritten it"
            )
    for holder, _ in earlier.positions:
        if holder is holder.computation.root and holder.computation in _around(lifetimes, writer):
            raise PlanError(
                f"{writer.name}: overwrites {earlier.instruction.name!r}, a result of {holder.computation.name!r}"
            )


def _runs_in(lifetimes: Lifetimes, writer: Instruction, waiting: Instruction) -> bool:
    """Whether the writer belongs to the asynchronous computation that `waiting` waits for."""
    start = lifetimes.dataflow.callers.get(writer.computation.id)
    while waiting.opcode in ("async-update", "async-done"):
        waiting = waiting.operands[0]
    return start is waiting


def _around(lifetimes: Lifetimes, instruction: Instruction) -> dict[Computation, Instruction]:
    """The computations that an instruction runs in, from within, each with what calls the one before; itself first."""
    around = {instruction.computation: instruction}
    while instruction.computation.id in lifetimes.dataflow.callers:
        instruction = lifetimes.dataflow.callers[instruction.computation.id]
        around[instruction.computation] = instruction
    return around


def _exclusive(lifetimes: Lifetimes, some: Instruction, other: Instruction) -> bool:
    """Whether two instructions are in different branches of one conditional."""
    mine, others = _around(lifetimes, some), _around(lifetimes, other)
    meeting = next(computation for computation in mine if computation in others)
    return mine[meeting] is others[meeting] and mine[meeting].opcode == "conditional"
