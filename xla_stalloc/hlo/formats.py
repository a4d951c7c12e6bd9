"""From bytes to programs: tells the formats apart by their content, never by a file's name.

| content | from |
|---|---|
| `HloProto`, `HloModuleProto`, with or without gzip, xz, zlib, zstd | an XLA dump, a compiler hook |
| HLO text | an XLA dump, `Compiled.as_text()` |
| an XLA:CPU executable, bare or in PJRT's and IFRT's envelopes | `runtime_executable().serialize()` |
| a pickle around such an executable; it is searched, never unpickled | `jax.experimental.serialize_executable` |
| a compressed executable behind its compile time | an entry of JAX's persistent compilation cache |
"""

from __future__ import annotations

import gzip
import lzma
import pickletools
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.message import DecodeError

from xla_stalloc.hlo.errors import HloError
from xla_stalloc.hlo.module import Module
from xla_stalloc.hlo.schema import hlo_pb2

_TEXT_START = b"HloModule"
_PICKLE_START = b"\x80"
_MAX_ENVELOPE_BYTES = 1 << 20  # IFRT's metadata before an executable is far smaller
_COMPILE_TIME_BYTES = 4  # at the start of an entry of the compilation cache


@dataclass(frozen=True, slots=True)
class Program:
    """What a source holds, parsed but not yet linked into a `Module`.

    Attributes:
        proto: the module's message; it has at least one computation.
        buffer_assignment: XLA's, if the source has it.
        num_partitions: if the source says so beside the module, else 0.
        platform: if the source says so beside the module, else "".
    """

    proto: hlo_pb2.HloModuleProto
    buffer_assignment: hlo_pb2.BufferAssignmentProto | None = None
    num_partitions: int = 0
    platform: str = ""

    def link(self, source: str, platform: str = "") -> Module:
        """The module; `platform` is used where the program itself does not say.

        Raises:
            HloError: the message is not a complete program.
        """
        return Module(
            self.proto,
            source,
            platform=self.platform or platform,
            buffer_assignment=self.buffer_assignment,
            num_partitions=self.num_partitions,
        )

    def with_buffer_assignment(self, serialized: bytes) -> Program:
        """The same program with a serialized BufferAssignmentProto from elsewhere; unchanged if that is none."""
        assignment = _parse(hlo_pb2.BufferAssignmentProto, serialized)
        return replace(self, buffer_assignment=assignment) if assignment.buffer_allocations else self


def read(data: bytes, source: str) -> Program:
    """The program in these bytes.

    Raises:
        HloError: none of the formats above, or damaged.
    """
    if not data:
        raise HloError(source, "is empty", "Expected HLO: write or copy the file again")
    data = _decompress(data, source)
    if data.lstrip()[: len(_TEXT_START)] == _TEXT_START:
        return read_text(data, source)
    for reader in (_read_proto, _read_executable, _read_pickle):
        program = reader(data)
        if program is not None:
            return program
    raise HloError(
        source,
        f"expected HLO (a serialized HloProto or HloModuleProto, HLO text, or an XLA:CPU executable), but none of "
        f"these {len(data)} bytes' readings gives a program",
        "If the file is truncated, write it again; for an executable of another backend give the jax.stages.Compiled "
        "itself, or a folder written with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'",
    )


def read_text(text: bytes | str, source: str) -> Program:
    """The program in HLO text, by XLA's own parser.

    That parser ends the process on some contradictions (a parameter number out of range, say), so text that people
    have edited by hand is best read in a process of its own. Newer XLA leaves out the names of most tuple elements.

    Raises:
        HloError: the parser rejects it, or is not installed.
    """
    try:
        from jaxlib import _hlo  # type: ignore[attr-defined]
    except ImportError as error:
        advice = "Install jaxlib, or dump the program with --xla_dump_hlo_as_proto"
        raise HloError(source, f"HLO text needs XLA's parser, and it cannot be imported: {error}", advice) from None
    try:
        decoded = text if isinstance(text, str) else text.decode()
        serialized = _hlo.hlo_module_from_text(decoded).as_serialized_hlo_module_proto()
    except (RuntimeError, ValueError, TypeError) as error:
        reason = str(error).strip() or type(error).__name__
        raise HloError(source, f"is not valid HLO text: {reason}", "Dump or print the program again") from None
    program = _read_proto(serialized)
    if program is None:
        raise HloError(source, "is HLO text without any computation", "Dump or print the program again")
    # The parser keeps this in the module's configuration, which is not part of the message.
    partitions = re.search(r"\bnum_partitions=(\d+)", decoded.partition("\n")[0])
    return replace(program, num_partitions=int(partitions[1]) if partitions else 0)


def _decompress(data: bytes, source: str) -> bytes:
    for magic, name, decompress in _COMPRESSIONS:
        if data.startswith(magic):
            try:
                return decompress(data)
            except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
                advice = "The file is truncated or damaged: copy it again"
                raise HloError(source, f"starts like {name} data, but: {error}", advice) from None
    return data


def _unzstd(data: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise ValueError("reading it needs the package zstandard (pip install zstandard)") from None
    try:
        unpacked: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    return unpacked


_COMPRESSIONS: tuple[tuple[bytes, str, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", "gzip", gzip.decompress),
    (b"\xfd7zXZ\x00", "xz", lzma.decompress),
    (b"\x28\xb5\x2f\xfd", "zstd", _unzstd),
    (b"\x78\x9c", "zlib", zlib.decompress),
)


def _parse(message_type: Any, data: bytes) -> Any:
    """The message, or an empty one: bytes that are something else entirely are no error here."""
    try:
        return message_type.FromString(data)
    except DecodeError:
        return message_type()


def _read_proto(data: bytes) -> Program | None:
    # The formats cannot be taken for one another: where one has a message with computations, the others have a string
    # or nothing, so at most one reading gives a module with computations.
    hlo = _parse(hlo_pb2.HloProto, data)
    if hlo.hlo_module.computations:
        assignment = hlo.buffer_assignment if hlo.HasField("buffer_assignment") else None
        return Program(hlo.hlo_module, assignment)
    module = _parse(hlo_pb2.HloModuleProto, data)
    return Program(module) if module.computations else None


def _read_executable(data: bytes) -> Program | None:
    for offset in _executable_offsets(data):
        envelope = _parse(hlo_pb2.ExecutableAndOptionsProto, data[offset:])
        for serialized in (envelope.serialized_executable, data[offset:]):
            executable = _parse(hlo_pb2.CompilationResultProto, serialized)
            if executable.hlo_module.hlo_module.computations:
                return Program(
                    executable.hlo_module.hlo_module,
                    executable.buffer_assignment if executable.HasField("buffer_assignment") else None,
                    executable.hlo_module.config.num_partitions,
                    "cpu" if executable.obj_files_kind else "",
                )
    return None


def _executable_offsets(data: bytes) -> Iterator[int]:
    """Where an executable may start: at once, after IFRT's length-prefixed metadata, after a cache entry's header."""
    yield 0
    for start in (0, _COMPILE_TIME_BYTES):
        length = shift = 0
        for offset in range(start, min(start + 4, len(data))):
            length |= (data[offset] & 0x7F) << shift
            shift += 7
            if data[offset] < 0x80:
                if length < min(_MAX_ENVELOPE_BYTES, len(data)):
                    yield offset + 1 + length
                break


def _read_pickle(data: bytes) -> Program | None:
    if not data.startswith(_PICKLE_START):
        return None
    try:
        # Walks over the opcodes without running any: a pickle from a stranger can do nothing here.
        for _, argument, _ in pickletools.genops(data):
            if isinstance(argument, bytes):
                program = _read_executable(argument)
                if program is not None:
                    return program
    except (ValueError, OverflowError, MemoryError):
        pass  # not a pickle after all, or a truncated one
    return None
