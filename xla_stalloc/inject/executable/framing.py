"""The layers around what a serialized XLA:CPU executable says about memory.

``executable.serialize()`` of jaxlib gives, from outside to inside: the length of IFRT's metadata as a varint and the
metadata, PJRT's ``ExecutableAndOptionsProto``, XLA:CPU's ``CompilationResultProto``, and in that the thunk sequence and
the buffer assignment. Object code and HLO, nearly all of the bytes, are passed on unread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable.errors import NotRewritableError

_LONGEST_VARINT = 5
_KERNELS = 2  # the kind of object files that every jaxlib from 0.10 on writes


@dataclass(frozen=True)
class Executable:
    """A serialized executable, taken apart. The messages may be changed; `write` puts them together again.

    Attributes:
        metadata: IFRT's, with its length in front.
        envelope: PJRT's layer, without what is inside.
        result: XLA:CPU's layer, without the two parts below.
        thunks: What runs, in which order, on which slices of which allocation.
        assignment: The allocations.
    """

    metadata: bytes
    envelope: schema.ExecutableAndOptionsProto
    result: schema.CompilationResultProto
    thunks: schema.ThunkSequenceProto
    assignment: schema.AllocationsProto

    def temp(self) -> schema.BufferAllocationProto:
        """The allocation of temporaries.

        Raises:
            NotRewritableError: There is none, or more than one.
        """
        temps = [allocation for allocation in self.assignment.buffer_allocations if _is_temp(allocation)]
        if len(temps) != 1:
            raise NotRewritableError(f"the executable has {len(temps)} allocations of temporaries, not one")
        temp: schema.BufferAllocationProto = temps[0]
        return temp


def _is_temp(allocation: schema.BufferAllocationProto) -> bool:
    """As `BufferAllocation::IsPreallocatedTempBuffer` has it (xla/service/buffer_assignment.h)."""
    return not (
        allocation.is_entry_computation_parameter
        or allocation.maybe_live_out
        or allocation.is_thread_local
        or allocation.is_constant
        or allocation.is_tuple
    )


def read(data: bytes) -> Executable:
    """Takes a serialized executable apart.

    Raises:
        NotRewritableError: It is no XLA:CPU executable, or has a field that is not known here. Such a field may say
            something about memory, so it cannot just be passed on.
    """
    metadata, envelope, result = _open(data)
    if result.obj_files_kind != _KERNELS:
        raise NotRewritableError(f"object files of kind {result.obj_files_kind} are not known here")
    if not result.object_files:
        raise NotRewritableError("it has no object code, which XLA:CPU leaves out of what was loaded itself")
    thunks = _parse(schema.ThunkSequenceProto, result.thunk_sequence, "the thunk sequence")
    assignment = _parse(schema.AllocationsProto, result.buffer_assignment, "the buffer assignment")
    envelope.ClearField("serialized_executable")
    result.ClearField("thunk_sequence")
    result.ClearField("buffer_assignment")
    return Executable(metadata, envelope, result, thunks, assignment)


def _open(data: bytes) -> tuple[bytes, schema.ExecutableAndOptionsProto, schema.CompilationResultProto]:
    start = _end_of_metadata(data)
    envelope = _parse(schema.ExecutableAndOptionsProto, data[start:], "PJRT's envelope")
    result = _parse(schema.CompilationResultProto, envelope.serialized_executable, "the compilation result")
    return data[:start], envelope, result


def write(executable: Executable) -> bytes:
    """Puts an executable together; of one that was read and not changed, the same bytes."""
    result = schema.CompilationResultProto()
    result.CopyFrom(executable.result)
    result.thunk_sequence = executable.thunks.SerializeToString()
    result.buffer_assignment = executable.assignment.SerializeToString()
    envelope = schema.ExecutableAndOptionsProto()
    envelope.CopyFrom(executable.envelope)
    envelope.serialized_executable = result.SerializeToString()
    data: bytes = executable.metadata + envelope.SerializeToString()
    return data


def _end_of_metadata(data: bytes) -> int:
    length = shift = 0
    for offset, byte in enumerate(data[:_LONGEST_VARINT]):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return offset + 1 + length
    raise NotRewritableError("the serialized executable does not start with the length of IFRT's metadata")


def _parse(kind: Any, data: bytes, what: str) -> Any:
    try:
        message = kind.FromString(data)
    except DecodeError as error:
        raise NotRewritableError(f"{what} cannot be read: {error}") from None
    known = kind()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.SerializeToString() != data:
        raise NotRewritableError(f"{what} has fields that are not known here")
    return message
