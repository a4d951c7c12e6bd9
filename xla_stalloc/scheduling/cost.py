"""How long instructions take on a GPU, by a roofline: a model to compare orders with, never to promise times.

A kernel takes as long as its arithmetic at the card's speed, or its bytes at the memory's, whichever is longer. A
collective moves its bytes around a ring at the link's speed. Times are whole nanoseconds, so that every process of a
job computes the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xla_stalloc.hlo import Computation, Instruction, Shape

_KERNEL_NS = 2_000  # what the smallest kernel takes
_COLLECTIVE_NS = 15_000  # what a collective takes besides moving bytes
_READS_PART = frozenset(("dynamic-slice", "gather", "slice"))
_FREE = frozenset(("add-dependency", "bitcast", "constant", "get-tuple-element", "parameter", "partition-id", "tuple"))


@dataclass(frozen=True)
class Card:
    """What a GPU reaches in practice.

    Attributes:
      name: as in topologies.
      flops: of bfloat16 (float16 where there is none) matrix products, per second.
      memory_bytes: that pass through its memory per second.
      link_bytes: that it sends to other cards of its node per second, while it receives as many.
    """

    name: str
    flops: float
    memory_bytes: float
    link_bytes: float


def _card(name: str, teraflops: float, terabytes: float, link_gigabytes: float) -> Card:
    """From the data sheet's dense figures; of these a tuned program reaches about so much."""
    return Card(name, 0.6e12 * teraflops, 0.83e12 * terabytes, 0.67e9 * link_gigabytes)


CARDS = {
    card.name: card
    for card in (
        _card("v100", 125, 0.9, 150),
        _card("a100", 312, 2.0, 300),
        _card("h100", 989, 3.35, 450),
        _card("h200", 989, 4.8, 450),
        _card("b200", 2250, 8.0, 900),
        _card("gb200", 2500, 8.0, 900),
    )
}


def card_of(device_kind: str, default: str) -> str:
    """The card that a device calls itself, e.g. "NVIDIA H100 80GB HBM3"; the default if it is none of `CARDS`."""
    words = device_kind.lower().replace("-", " ").split()
    return next((name for name in CARDS if name in words), default)


class Costs:
    """Times of the instructions of a module, in nanoseconds."""

    def __init__(self, card: Card) -> None:
        """Nothing is known at first."""
        self.card = card
        self._flops: dict[int, int] = {}  # by computation id

    def kernel(self, instruction: Instruction) -> int:
        """Of what occupies the compute stream; 0 for what only names values."""
        opcode = instruction.opcode
        if opcode in _FREE or opcode in _SENT or opcode.endswith(("-start", "-done", "-update")):
            return 0
        if opcode in ("call", "conditional", "while"):
            # One pass: how often a loop turns is not known here, and the same in every order.
            return max((sum(map(self.kernel, c.instructions)) for c in instruction.called), default=0)
        if opcode == "fusion":
            fused = instruction.called[0]
            return self._roofline(self._fused_flops(fused), _bytes(instruction.shape) + _parameter_bytes(fused))
        moved = _bytes(instruction.shape) + sum(_bytes(operand.shape) for operand in instruction.operands)
        return self._roofline(_dot_flops(instruction), moved)

    def collective(self, instruction: Instruction) -> int:
        """Of what occupies the communication stream; 0 if the instruction is no collective and starts none.

        For an asynchronous start: of the operation that it starts.
        """
        operation = started(instruction)
        if operation is None:
            return 0
        sent = _ring_bytes(operation)
        if sent is None:
            return self.kernel(operation)
        return int(sent / self.card.link_bytes * 1e9) + _COLLECTIVE_NS

    def flops(self, instruction: Instruction) -> int:
        """Floating-point operations of the matrix products in an instruction, or in its fusion."""
        return self._fused_flops(instruction.called[0]) if instruction.opcode == "fusion" else _dot_flops(instruction)

    def _roofline(self, flops: int, moved: int) -> int:
        return max(int(flops / self.card.flops * 1e9), int(moved / self.card.memory_bytes * 1e9), _KERNEL_NS)

    def _fused_flops(self, computation: Computation) -> int:
        known = self._flops.get(computation.id)
        if known is None:
            known = self._flops[computation.id] = sum(
                self._fused_flops(i.called[0]) if i.opcode == "fusion" else _dot_flops(i)
                for i in computation.instructions
            )
        return known


def started(instruction: Instruction) -> Instruction | None:
    """The operation behind an asynchronous start, a synchronous collective itself, None for anything else."""
    if instruction.opcode == "async-start":
        inner = instruction.called[0].instructions
        return next((i for i in reversed(inner) if i.opcode not in _FREE), None)
    if instruction.opcode.removesuffix("-start") in _SENT:
        return instruction
    return None


def _all_gather(operands: int, results: int, group: int) -> float:
    return results * (group - 1) / group


def _reduce_scatter(operands: int, results: int, group: int) -> float:
    return operands * (group - 1) / group


def _all_reduce(operands: int, results: int, group: int) -> float:
    return 2 * operands * (group - 1) / group


def _permute(operands: int, results: int, group: int) -> float:
    return operands


# Bytes that each device sends, of those of its operands and results, in a group of so many.
_SENT = {
    "all-gather": _all_gather,
    "all-reduce": _all_reduce,
    "all-to-all": _reduce_scatter,
    "collective-broadcast": _permute,
    "collective-permute": _permute,
    "ragged-all-to-all": _reduce_scatter,
    "reduce-scatter": _reduce_scatter,
}


def _ring_bytes(operation: Instruction) -> float | None:
    sent = _SENT.get(operation.opcode.removesuffix("-start"))
    if sent is None:
        return None
    operands = sum(_bytes(operand.shape) for operand in operation.operands)
    results = _bytes(operation.shape)
    if operation.opcode.endswith("-start") and operation.opcode != "all-reduce-start":
        results -= operands  # their results name the operands too
    return sent(operands, results, group_size(operation))


def group_size(collective: Instruction) -> int:
    """How many devices exchange data with each other."""
    proto = collective.proto
    iota = proto.iota_replica_group_list.num_devices_per_group
    listed = proto.collective_device_list
    mesh = proto.mesh_axes_replica_group_list
    groups = [len(group.replica_ids) for group in (*proto.replica_groups, *listed.replica_groups)]
    axes = math.prod(mesh.mesh.axes[axis.mesh_axis_index].size for axis in mesh.axes) if mesh.axes else 0
    found: int = iota or listed.iota_replica_group_list.num_devices_per_group or axes or max(groups, default=0)
    return found or max(collective.computation.module.num_partitions, 2)


def _dot_flops(instruction: Instruction) -> int:
    if instruction.opcode != "dot":
        return 0
    left = instruction.operands[0].shape.dimensions
    contracted: int = math.prod(left[d] for d in instruction.proto.dot_dimension_numbers.lhs_contracting_dimensions)
    return 2 * contracted * math.prod(instruction.shape.dimensions)


def _bytes(shape: Shape) -> int:
    return sum(part.byte_size for _, part in shape.subshapes() if not part.is_tuple)


def _parameter_bytes(fused: Computation) -> int:
    """What a fusion reads: of a parameter that it only takes parts of, those parts."""
    total = 0
    for parameter in fused.parameters:
        parts = [user for user in parameter.users if user.opcode in _READS_PART and user.operands[0] is parameter]
        whole = len(parts) < len(parameter.users) or not parts
        total += _bytes(parameter.shape) if whole else sum(_bytes(part.shape) for part in parts)
    return total
