"""Optimization barriers: a scheduler must honour them, but no memory is ever given to them.

Where XLA expands barriers only after scheduling (XLA:CPU since jaxlib 0.11), what its buffer assignment sees is the
module without them; so that is what lifetimes must be computed on.
"""

from __future__ import annotations

from xla_stalloc.hlo.module import Computation, Module
from xla_stalloc.hlo.rewrite import Edit, view

BARRIER = "opt-barrier"


def without_barriers(module: Module) -> Module:
    """A view of the module as it is after XLA's OptimizationBarrierExpander; the same object if it has no barriers.

    Gone are the barriers, the tuples that only fed them, and the get-tuple-elements that took such tuples apart.
    """
    running = (c for c in module.computations if c.is_scheduled or not module.is_scheduled)
    with_barriers = [c for c in running if any(i.opcode == BARRIER for i in c.instructions)]
    return view(module, {c.id: _expansion(c) for c in with_barriers}) if with_barriers else module


def _expansion(computation: Computation) -> Edit:
    stands_for: dict[int, int] = {}
    by_id = {instruction.id: instruction for instruction in computation.instructions}
    for instruction in computation.instructions:  # operands come before users
        if instruction.opcode == BARRIER:
            operand = instruction.operands[0].id
            stands_for[instruction.id] = stands_for.get(operand, operand)
        elif instruction.opcode == "get-tuple-element" and instruction.operands[0].id in stands_for:
            source = by_id[stands_for[instruction.operands[0].id]]
            if source.opcode == "tuple":
                element = source.operands[instruction.tuple_index].id
                stands_for[instruction.id] = stands_for.get(element, element)
    used = {
        stands_for.get(o.id, o.id) for i in computation.instructions if i.id not in stands_for for o in i.operands
    } | {stands_for.get(computation.root.id, computation.root.id)}
    unused = [i.id for i in computation.instructions if i.opcode == "tuple" and i.id not in used]
    return Edit(stands_for, unused)
