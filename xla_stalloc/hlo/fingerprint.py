"""A name for a program that does not change with its names, ids, order or origin.

Every instruction is hashed together with its operands' hashes, and then once more with its users': two instructions
that compute the same but are read by different ones get different hashes. A computation's hash is that of its root
and of the multiset of its instructions, a module's that of its entry and of its aliases.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import blake2b
from typing import TYPE_CHECKING

from xla_stalloc.hlo.schema import hlo_pb2

if TYPE_CHECKING:
    from xla_stalloc.hlo.module import Computation, Instruction, Module

_DIGEST_BYTES = 16
# What does not change the work that an instruction does, or is hashed through the things that it refers to.
_IGNORED_FIELDS = (
    "name",
    "id",
    "operand_ids",
    "control_predecessor_ids",
    "called_computation_ids",
    "metadata",
    "frontend_attributes",
    "statistics_viz",
    "original_value",
)


def fingerprint(module: Module) -> str:
    """The fingerprint of a module: 32 hexadecimal digits."""
    computations: dict[int, bytes] = {}
    for computation in module.computations:
        computations[computation.id] = _hash_computation(computation, computations)
    aliases = repr((sorted(module.input_output_alias), sorted(module.buffer_donors)))
    return _hash(computations[module.entry.id], aliases.encode()).hex()


def _hash_computation(computation: Computation, called: dict[int, bytes]) -> bytes:
    own: dict[int, bytes] = {}
    scratch = hlo_pb2.HloInstructionProto()
    for instruction in computation.instructions:
        own[instruction.id] = _hash(
            _attributes(instruction, scratch),
            *(own[operand.id] for operand in instruction.operands),
            b"control",
            *sorted(own[predecessor.id] for predecessor in instruction.control_predecessors),
            b"called",
            *(called[callee.id] for callee in instruction.called),
        )
    uses: defaultdict[int, list[bytes]] = defaultdict(list)
    seen_by_users: dict[int, bytes] = {}
    for user in reversed(computation.instructions):
        digest = seen_by_users[user.id] = _hash(own[user.id], *sorted(uses.pop(user.id, ())))
        for number, operand in enumerate(user.operands):
            uses[operand.id].append(digest + number.to_bytes(4, "little"))
    return _hash(seen_by_users[computation.root.id], *sorted(seen_by_users.values()))


def _attributes(instruction: Instruction, scratch: hlo_pb2.HloInstructionProto) -> bytes:
    scratch.CopyFrom(instruction.proto)
    for field in _IGNORED_FIELDS:
        scratch.ClearField(field)
    serialized: bytes = scratch.SerializeToString(deterministic=True)
    return serialized


def _hash(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        # With the length in front, no two lists of parts give the same bytes.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
