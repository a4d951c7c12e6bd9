"""What a plan may do to memory spaces beside the device's main one: nothing that other devices rely on.

Collectives may read and write the memory of other devices directly, at the offset that their own buffer has (XLA:GPU
puts such buffers into a memory space of their own). All devices of a program run one module, so they have equal offsets
as long as all of them run the same order; where other processes may run stock's, the offsets have to be stock's.
"""

from __future__ import annotations

from xla_stalloc.hlo.shape import ShapeIndex
from xla_stalloc.lifetimes import Lifetimes

_MAIN = 0
_HOST = 5  # belongs to the process; no device reaches into another one's


def moved_buffer(stock: Lifetimes, planned: Lifetimes) -> str | None:
    """The name of an instruction whose buffer has another offset in such a memory space than under stock's order."""
    for space in _spaces(stock):
        before, after = _offsets(stock, space), _offsets(planned, space)
        names = {value.instruction.id: value.instruction.name for value in stock.values}
        for place, offset in before.items():
            if after.get(place) != offset:
                return names[place[0]]
    return None


def grown_space(stock: Lifetimes, planned: Lifetimes) -> tuple[int, int, int] | None:
    """A memory space that needs more bytes than under stock's order: (its number, stock's bytes, the plan's)."""
    for space in _spaces(stock):
        before, after = stock.temp_bytes({}, space), planned.temp_bytes({}, space)
        if after > before:
            return space, before, after
    return None


def has_other_memories(lifetimes: Lifetimes) -> bool:
    """Whether there is anything to check."""
    return bool(_spaces(lifetimes))


def _spaces(lifetimes: Lifetimes) -> list[int]:
    return sorted({buffer.memory_space for buffer in lifetimes.buffers} - {_MAIN, _HOST})


def _offsets(lifetimes: Lifetimes, space: int) -> dict[tuple[int, ShapeIndex], int]:
    found = lifetimes.assignment(space).offsets
    in_space = {value.id for buffer in lifetimes.buffers if buffer.memory_space == space for value in buffer.values}
    return {(v.instruction.id, v.index): offset for v, offset in found.items() if v.id in in_space}
