"""XLA:GPU's own rules on top of the common ones: which operands its fusions and collectives may write over.

They are those of XLA's `GpuAliasInfo` (xla/service/gpu/alias_info.cc): a fusion that XLA emits as one loop reads every
element just before it writes the one in its place, even if the result has another shape or type of the same width.
"""

import math

from xla_stalloc.hlo import Instruction, Shape
from xla_stalloc.hlo.schema.hlo_pb2 import HloInstructionProto
from xla_stalloc.lifetimes.dataflow import ShapeIndex
from xla_stalloc.lifetimes.sharing import ELEMENTWISE, FusedUses, Sharing

_IN_STEP = ELEMENTWISE - {"copy"} | {"bitcast"}  # a copy inside a fusion may change the layout
_UPDATES = ("dynamic-update-slice", "scatter")


class GpuSharing(Sharing):
    """Answers, with memory, whether output and operand may share on XLA:GPU."""

    def allowed(
        self,
        operand: Instruction,
        operand_index: ShapeIndex,
        user: Instruction,
        user_index: ShapeIndex,
        number: int | None = None,
    ) -> bool:
        """See `Sharing.allowed`."""
        if user.opcode not in ("all-reduce", "custom-call", "fusion") or operand.opcode == "constant":
            return super().allowed(operand, operand_index, user, user_index, number)
        numbers = [i for i, o in enumerate(user.operands) if o is operand] if number is None else [number]
        source, target = operand.shape.at(operand_index), user.shape.at(user_index)
        if source == target and self._in_place_on(numbers, operand_index, user, user_index):
            return True
        match user.opcode:
            case "all-reduce":
                return source == target and (len(user.operands) == 1 or user_index in [(n,) for n in numbers])
            case "custom-call":
                return False
        if operand.shape.is_tuple or not _same_elements(source, target):
            return False
        return _written_in_step(self._fused(user.called[0]), user.fusion_kind, numbers[0], user_index)


def _same_elements(some: Shape, other: Shape) -> bool:
    if some == other:
        return True
    if not (some.is_array and other.is_array):
        return False
    return math.prod(some.dimensions) == math.prod(other.dimensions) and some.byte_size == other.byte_size


def _written_in_step(fusion: FusedUses, kind: str, parameter: int, index: ShapeIndex) -> bool:
    """Whether all that is computed from a parameter, the output at `index` among it, goes element by element.

    A reduction is no obstacle in the fusion that is emitted for it: it reads everything before other outputs are
    written. A fusion that is emitted for a transpose goes through its outputs one by one, so no other may be reached.
    """
    output = root = fusion.messages[fusion.computation.proto.root_id]
    for part in index:
        output = fusion.messages[output.operand_ids[part]] if output.opcode == "tuple" else output
    reduction = _reduction(fusion, root)
    one_by_one = kind == "kInput" and reduction is None
    pending = [fusion.parameters[parameter]]
    seen = set(pending)
    reached = False
    while pending:
        id = pending.pop()
        reached = reached or id == output.id
        if id == reduction:
            continue
        for user, number in fusion.uses.get(id, ()):
            if user.id not in seen:
                seen.add(user.id)
                pending.append(user.id)
            if user.opcode in _UPDATES:
                if number != 0:
                    return False
            elif user.opcode == "tuple":
                if one_by_one and id != output.id:
                    return False
            elif user.id != reduction and user.opcode not in _IN_STEP:
                return False
    return reached


def _reduction(fusion: FusedUses, root: HloInstructionProto) -> int | None:
    """Id of the reduction that makes a fusion one of XLA's reduction fusions: it is an output, but for bitcasts."""
    found = None
    for id in root.operand_ids if root.opcode == "tuple" else [root.id]:
        message = fusion.messages[id]
        while message.opcode == "bitcast":
            message = fusion.messages[message.operand_ids[0]]
        if message.opcode == "reduce":
            found = message.id
    return found
