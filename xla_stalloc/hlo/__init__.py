"""What the compiler said: modules, schedules and buffer assignments, from any source.

module = hlo.open(jax.jit(step).lower(state, batch).compile())
for instruction in module.entry.sequence:
    print(instruction.name, instruction.shape, instruction.shape.byte_size)
"""

from xla_stalloc.hlo.errors import HloError
from xla_stalloc.hlo.locations import SourceLocation
from xla_stalloc.hlo.module import Computation, Instruction, Module
from xla_stalloc.hlo.shape import Shape, ShapeIndex
from xla_stalloc.hlo.sources import open, open_all, open_each

__all__ = [
    "Computation",
    "HloError",
    "Instruction",
    "Module",
    "Shape",
    "ShapeIndex",
    "SourceLocation",
    "open",
    "open_all",
    "open_each",
]
