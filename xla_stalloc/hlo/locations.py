"""Where in the user's program an instruction comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xla_stalloc.hlo.schema import hlo_pb2


class SourceLocation(NamedTuple):
    """A line of the user's program; `function` is "" where the compiler was not told."""

    file: str
    line: int
    function: str


class StackFrames:
    """A module's table of stack frames, resolved on demand.

    Newer XLA writes only a frame's number into an instruction's metadata, and the frames once per module.
    """

    __slots__ = ("_index", "_stacks")

    def __init__(self, index: hlo_pb2.StackFrameIndexProto) -> None:
        """Args: the module's table; may be empty."""
        self._index = index
        self._stacks: dict[int, tuple[SourceLocation, ...]] = {}

    def stack(self, frame_id: int) -> tuple[SourceLocation, ...]:
        """The frames from `frame_id` (1-based) outwards to its callers; ends early where the table does."""
        stack = self._stacks.get(frame_id)
        if stack is None:
            stack = self._stacks[frame_id] = self._resolve(frame_id)
        return stack

    def _resolve(self, frame_id: int) -> tuple[SourceLocation, ...]:
        index, stack, seen = self._index, list[SourceLocation](), set[int]()
        while 1 <= frame_id <= len(index.stack_frames) and frame_id not in seen:
            seen.add(frame_id)
            frame = index.stack_frames[frame_id - 1]
            if not 1 <= frame.file_location_id <= len(index.file_locations):
                break
            location = index.file_locations[frame.file_location_id - 1]
            file = _lookup(index.file_names, location.file_name_id)
            stack.append(SourceLocation(file, location.line, _lookup(index.function_names, location.function_name_id)))
            frame_id = frame.parent_frame_id
        return tuple(stack)


def _lookup(names: Sequence[str], name_id: int) -> str:
    return names[name_id - 1] if 1 <= name_id <= len(names) else ""
