"""Optimization barriers: a scheduler must honour them, but no memory is ever given to them.

Where XLA expands barriers only after scheduling (XLA:CPU since jaxlib 0.11), what its buffer assignment sees is the
module without them; so that is what lifetimes must be computed on.
"""

from xla_stalloc.hlo.module import Module
from xla_stalloc.hlo.schema import hlo_pb2

BARRIER = "opt-barrier"


def without_barriers(module: Module) -> Module:
    """The module as it is after XLA's OptimizationBarrierExpander; the same object if it has no barriers.

    Instructions keep their ids. Gone are the barriers, the tuples that only fed them, and the get-tuple-elements that
    took such tuples apart.
    """
    if not any(instruction.opcode == BARRIER for instruction in module.instructions_by_id.values()):
        return module
    proto = hlo_pb2.HloModuleProto()
    proto.CopyFrom(module.proto)
    for computation in proto.computations:
        _expand(computation, proto.schedule)
    return Module(
        proto,
        module.source,
        platform=module.platform,
        buffer_assignment=module.buffer_assignment,
        num_partitions=module.num_partitions,
    )


def _expand(computation: hlo_pb2.HloComputationProto, schedule: hlo_pb2.HloScheduleProto) -> None:
    by_id = {instruction.id: instruction for instruction in computation.instructions}
    stands_for: dict[int, int] = {}  # id of something that disappears -> id of what its users read instead
    for instruction in computation.instructions:  # operands come before users
        if instruction.opcode == BARRIER:
            operand = instruction.operand_ids[0]
            stands_for[instruction.id] = stands_for.get(operand, operand)
        elif instruction.opcode == "get-tuple-element" and instruction.operand_ids[0] in stands_for:
            source = by_id[stands_for[instruction.operand_ids[0]]]
            if source.opcode == "tuple":
                element = source.operand_ids[instruction.tuple_index]
                stands_for[instruction.id] = stands_for.get(element, element)
    if not stands_for:
        return
    for instruction in computation.instructions:
        if any(operand in stands_for for operand in instruction.operand_ids):
            instruction.operand_ids[:] = [stands_for.get(operand, operand) for operand in instruction.operand_ids]
    computation.root_id = stands_for.get(computation.root_id, computation.root_id)
    gone = set(stands_for) | _unused_tuples(computation, stands_for)
    for instruction in computation.instructions:
        if any(before in gone for before in instruction.control_predecessor_ids):
            kept = [before for before in instruction.control_predecessor_ids if before not in gone]
            instruction.control_predecessor_ids[:] = kept
    remaining = [instruction for instruction in computation.instructions if instruction.id not in gone]
    copies = [hlo_pb2.HloInstructionProto.FromString(instruction.SerializeToString()) for instruction in remaining]
    del computation.instructions[:]
    computation.instructions.extend(copies)
    if computation.id in schedule.sequences:
        sequence = schedule.sequences[computation.id]
        sequence.instruction_ids[:] = [id for id in sequence.instruction_ids if id not in gone]


def _unused_tuples(computation: hlo_pb2.HloComputationProto, gone: dict[int, int]) -> set[int]:
    used = {o for i in computation.instructions if i.id not in gone for o in i.operand_ids} | {computation.root_id}
    return {i.id for i in computation.instructions if i.opcode == "tuple" and i.id not in used}
