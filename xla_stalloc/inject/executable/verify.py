"""Does a rewritten executable compute what the original does? Shares no code with what chose the offsets.

First, that nothing was changed but where temporaries lie; then, that every read still sees what its producer wrote.
"""

from __future__ import annotations

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable import framing, side_by_side
from xla_stalloc.inject.executable.errors import RewriteError


def verify(original: bytes, rewritten: bytes) -> None:
    """Checks a rewritten, serialized executable against the original.

    Raises:
        RewriteError: More than the placement of temporaries differs, a slice is out of bounds or not aligned as before,
            or a read might see another value than in the original. Says where.
        NotRewritableError: One of the two cannot be read.
    """
    before, after = framing.read(original), framing.read(rewritten)
    if (before.metadata, before.envelope, before.result) != (after.metadata, after.envelope, after.result):
        raise RewriteError("something else than thunks and allocations was changed")
    size = _check_allocations(before, after)
    side_by_side.check(before.thunks, after.thunks, before.temp().index, size)


def _check_allocations(before: framing.Executable, after: framing.Executable) -> int:
    """Checks the allocations; returns the new size of the temp allocation."""
    old, new = before.temp(), after.temp()
    size = new.size
    for value in new.assigned:
        if not 0 <= value.offset <= size - value.size:
            raise RewriteError(f"value {value.logical_buffer_id} lies outside of the temp allocation of {size} bytes")
    if _without_placement(before.assignment, old.index) != _without_placement(after.assignment, new.index):
        raise RewriteError("the allocations differ in more than the size of temporaries and their offsets")
    return size


def _without_placement(assignment: schema.AllocationsProto, temp: int) -> schema.AllocationsProto:
    """A copy without the size and the offsets of one allocation."""
    copy = schema.AllocationsProto()
    copy.CopyFrom(assignment)
    for allocation in copy.buffer_allocations:
        if allocation.index == temp:
            allocation.ClearField("size")
            for value in allocation.assigned:
                value.ClearField("offset")
    return copy
