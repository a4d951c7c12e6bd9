"""Which line of the user's program an instruction comes from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import PurePath

from xla_stalloc.hlo import Instruction, ShapeIndex

_PART = "get-tuple-element"
_NAMES = 2  # of a path that are enough to know the file
_SEARCHED = 64  # instructions looked at for one that has a source


def source_of(instruction: Instruction, index: ShapeIndex = ()) -> str:
    """Where the value at `index` of an instruction comes from.

    Returns ``file:line``; of an argument, its name; ``""`` if nothing tells. What the compiler has made up (copies,
    broadcasts of constants, the state of a loop inside it) has no line of its own: it gets that of what it was made
    from, or of what it was made for.
    """
    if _is_argument(instruction):
        return _name(instruction)
    parts = [user for user in instruction.users if index and user.opcode == _PART and user.tuple_index == index[0]]
    return (
        _search([instruction], _before, _line)
        or _search(parts or [instruction], _after, _line)
        or _search([instruction], _before, _name)
    )


def shortened(source: str) -> str:
    """A source with the end of its file's path only."""
    file, colon, line = source.rpartition(":")
    if not colon or not line.isdigit():
        return source
    return "/".join(PurePath(file).parts[-_NAMES:]) + f":{line}"


_Neighbours = Callable[[Instruction], list[Instruction]]


def _search(instructions: list[Instruction], neighbours: _Neighbours, tell: Callable[[Instruction], str]) -> str:
    """What the nearest instruction that tells something tells."""
    waiting, seen = deque(instructions), {instruction.id for instruction in instructions}
    while waiting and len(seen) < _SEARCHED:
        found = waiting.popleft()
        if told := tell(found):
            return told
        for other in neighbours(found):
            if other.id not in seen:
                seen.add(other.id)
                waiting.append(other)
    return ""


def _before(instruction: Instruction) -> list[Instruction]:
    fused = [computation.root for computation in instruction.called if instruction.opcode == "fusion"]
    return fused + instruction.operands


def _after(instruction: Instruction) -> list[Instruction]:
    return instruction.users


def _line(instruction: Instruction) -> str:
    return f"{instruction.source_file}:{instruction.source_line}" if instruction.source_file else ""


def _name(instruction: Instruction) -> str:
    # XLA gives copies and layout changes of an argument its op_name, which is nothing but the argument's name.
    return instruction.op_name or (instruction.name if _is_argument(instruction) else "")


def _is_argument(instruction: Instruction) -> bool:
    return instruction.opcode == "parameter" and instruction.computation is instruction.computation.module.entry
