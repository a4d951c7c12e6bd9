"""What is told of each box: texts as tables, since thousands of boxes share a shape, a line or a call stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.lifetimes import Value
from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.kinds import kind_of
from xla_stalloc.report.scopes import layer_of
from xla_stalloc.report.sources import shortened, source_of

_FRAMES = 12  # of a call stack; what is further out is the same for all


@dataclass(frozen=True, slots=True)
class Texts:
    """A text for each box: `table[codes[n]]`; codes are int32[n]."""

    table: tuple[str, ...]
    codes: NDArray[np.int32]

    def __getitem__(self, number: int) -> str:
        """The text of a box."""
        return self.table[int(self.codes[number])]


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of the boxes of a map.

    Attributes:
        name: of the instruction, with the place in its output where that is a tuple.
        shape: as in HLO text.
        dtype: as in HLO text.
        opcode: of the instruction.
        band: name of the band.
        kind: what it is for, see `kinds.kind_of`.
        layer: of the model, as far as the path of the operation tells.
        source: ``file:line`` in the user's program; of an argument, its name.
        op_name: path of the operation in the user's program.
        stack: the user's call stack, innermost frame first, a line for each.
    """

    name: tuple[str, ...]
    shape: Texts
    dtype: Texts
    opcode: Texts
    band: Texts
    kind: Texts
    layer: Texts
    source: Texts
    op_name: Texts
    stack: Texts


def labels(drawn: MemoryMap) -> Labels:
    """The labels of a map's boxes."""
    values = drawn.values
    return Labels(
        name=tuple(_name(value) for value in values),
        shape=intern(map(_once(lambda value: id(value.shape), lambda value: str(value.shape)), values)),
        dtype=intern(value.shape.element_type for value in values),
        opcode=intern(value.instruction.opcode for value in values),
        band=intern(drawn.bands[number].name for number in drawn.band.tolist()),
        kind=intern(
            kind_of(value, drawn.bands[number].name) for value, number in zip(values, drawn.band.tolist(), strict=True)
        ),
        layer=intern(map(_once(lambda value: value.instruction.op_name, _layer), values)),
        source=intern(shortened(source_of(value.instruction, value.index)) for value in values),
        op_name=intern(value.instruction.op_name for value in values),
        stack=intern(map(_once(lambda value: value.instruction.source_stack, _stack), values)),
    )


def intern(texts: Iterable[str]) -> Texts:
    """Texts as a table in order of first appearance."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in texts]
    return Texts(tuple(numbers), np.array(codes, np.int32))


def _once(key: Callable[[Value], object], tell: Callable[[Value], str]) -> Callable[[Value], str]:
    """Tells once for each key."""
    known: dict[object, str] = {}

    def told(value: Value) -> str:
        found = key(value)
        if found not in known:
            known[found] = tell(value)
        return known[found]

    return told


def _layer(value: Value) -> str:
    return layer_of(value.instruction.op_name)


def _name(value: Value) -> str:
    index = f"{{{','.join(map(str, value.index))}}}" if value.index else ""
    return value.instruction.name + index


def _stack(value: Value) -> str:
    stack = value.instruction.source_stack
    lines = [f"{shortened(f'{frame.file}:{frame.line}')} {frame.function}".rstrip() for frame in stack[:_FRAMES]]
    return "\n".join([*lines, *(["..."] if len(stack) > _FRAMES else [])])
