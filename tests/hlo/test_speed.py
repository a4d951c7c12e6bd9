"""A compiler hook opens every module that a process compiles: opening must stay far below compiling."""

from __future__ import annotations

import time

from xla_stalloc import hlo
from xla_stalloc.hlo.schema import hlo_pb2

INSTRUCTIONS = 20_000
SECONDS = 3.0  # measured: about 0.25 on one core; the rest is for slow and busy machines


def test_twenty_thousand_instructions() -> None:
    proto = hlo_pb2.HloModuleProto(name="long", entry_computation_id=1)
    computation = proto.computations.add(name="main", id=1, root_id=INSTRUCTIONS)
    for id in range(1, INSTRUCTIONS + 1):
        operands = [id - 1, id // 2] if id > 1 else []
        instruction = computation.instructions.add(
            name=f"add.{id}", id=id, opcode="add" if operands else "parameter", operand_ids=operands
        )
        instruction.shape.element_type = 11
        instruction.shape.dimensions.extend([8, id % 100])
        proto.schedule.sequences[1].instruction_ids.append(id)
    serialized = proto.SerializeToString()
    start = time.perf_counter()
    module = hlo.Module.from_bytes(serialized, "long")
    opened = time.perf_counter() - start
    assert len(module.entry.sequence) == INSTRUCTIONS
    assert opened < SECONDS
