"""From anything that holds a compiled program to modules: `open` and `open_all`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from xla_stalloc.hlo.errors import HloError
from xla_stalloc.hlo.formats import Program, read, read_text
from xla_stalloc.hlo.module import Module

# An XLA dump names the final program of each module so, text beside protobuf; best first.
_FINAL_PROGRAMS = ("*after_optimizations.hlo.pb*", "*after_optimizations.txt", "*.hlo.pb*")
_DUMP_PLATFORM = re.compile(r"(cpu|gpu|tpu)_after_optimizations")
_BYTES = (bytes, bytearray, memoryview)
_DUMP_ADVICE = "Compile with XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto' and give that folder"


class _Found(NamedTuple):
    program: Program
    source: str
    platform: str

    def link(self) -> Module:
        return self.program.link(self.source, self.platform)


def open(source: Any, *, name: str | None = None) -> Module:
    """Open one program.

    Args:
        source: a `jax.stages.Compiled` or `Lowered`, a loaded executable or one of its HLO modules; a path of a dump
            folder or of a file of any format listed in `formats`; the content of such a file as bytes; or HLO text. A
            `Lowered` has not been scheduled: its module has `is_scheduled` False.
        name: which module, if the source has several, "jit_step" for instance. By default the one with the most
            instructions, which in the dump of a training script is the training step.

    Raises:
        HloError: there is no program in the source, it is damaged, or none has the name.
    """
    found = list(_find(source))
    named = [candidate for candidate in found if name in (None, candidate.program.proto.name)]
    if not named:
        names = ", ".join(sorted({candidate.program.proto.name for candidate in found}))
        raise HloError(_describe(source), f"has no module named {name!r}", f"It has: {names}")
    return max(named, key=_instruction_count).link()


def open_all(source: Any) -> list[Module]:
    """Open every program of a source; sources are those of `open`. A dump's modules come in the order of file names.

    Raises:
        HloError: there is no program in the source, or one of them is damaged.
    """
    return [candidate.link() for candidate in _find(source)]


def open_each(source: Any, *, name: str | None = None) -> Iterator[Module | HloError]:
    """Open every program of a source that can be opened; in the place of one that cannot comes the error.

    Of modules of one name, `name` keeps the one with the most instructions, as `open` does.

    Raises:
        HloError: the source as a whole cannot be read, or has no module of the name.
    """
    found = _parse_each(source)
    if name is not None:
        named = [one for one in found if not isinstance(one, HloError) and one.program.proto.name == name]
        if not named:
            damaged = [one for one in found if isinstance(one, HloError)]
            names = ", ".join(sorted({one.program.proto.name for one in found if not isinstance(one, HloError)}))
            if damaged and not names:
                raise damaged[0]
            raise HloError(_describe(source), f"has no module named {name!r}", f"It has: {names}")
        found = [max(named, key=_instruction_count)]
    for one in found:
        try:
            yield one if isinstance(one, HloError) else one.link()
        except HloError as error:
            yield error


def _parse_each(source: Any) -> list[_Found | HloError]:
    if not isinstance(source, (str, os.PathLike)) or _is_text(source) or not os.path.isdir(source):
        return list(_find(source))
    found = list[_Found | HloError]()
    for path in _programs_in(Path(source)):
        try:
            found.append(_read_file(path))
        except HloError as error:
            found.append(error)
    return found


def _instruction_count(found: _Found) -> int:
    return sum(len(computation.instructions) for computation in found.program.proto.computations)


def _find(source: Any) -> Iterable[_Found]:
    name = _describe(source)
    if _is_text(source):
        return [_Found(read_text(source, name), name, "")]
    if isinstance(source, _BYTES):
        return [_Found(read(bytes(source), name), name, "")]
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        # Unlike Path.is_dir, it is also False for names that the system cannot take; reading then says why.
        return _find_in_folder(path) if os.path.isdir(path) else [_read_file(path)]
    return _find_in_object(source)


def _is_text(source: Any) -> bool:
    return isinstance(source, str) and source.lstrip().startswith("HloModule")


def _describe(source: Any) -> str:
    """A source's name in messages."""
    if _is_text(source):
        return "HLO text"
    if isinstance(source, _BYTES):
        return f"{len(source)} bytes"
    if isinstance(source, (str, os.PathLike)):
        return str(Path(source))
    return f"{type(source).__module__}.{type(source).__qualname__}"


# ---- Files


def _read_file(path: Path) -> _Found:
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise HloError(str(path), f"cannot be read: {reason}", "Give a file with HLO, or a dump folder") from None
    marked = _DUMP_PLATFORM.search(path.name)
    platform = {"gpu": "rocm" if "gfx" in path.name else "cuda"}.get(marked[1], marked[1]) if marked else ""
    return _Found(read(data, str(path)), str(path), platform)


def _find_in_folder(folder: Path) -> Iterator[_Found]:
    yield from map(_read_file, _programs_in(folder))


def _programs_in(folder: Path) -> list[Path]:
    paths = _dumped_programs(folder)
    if not paths:
        raise HloError(str(folder), "has no dump of an optimized program", _DUMP_ADVICE)
    return paths


def _dumped_programs(folder: Path) -> list[Path]:
    chosen: dict[str, Path] = {}
    for pattern in _FINAL_PROGRAMS[:2]:
        for path in sorted(folder.glob(pattern)):
            chosen.setdefault(path.name.partition("after_optimizations")[0], path)
    return sorted(chosen.values()) or sorted(folder.glob(_FINAL_PROGRAMS[2]))


# ---- Objects of JAX, by what they can do: this package does not import JAX


def _find_in_object(source: Any) -> list[_Found]:
    name = _describe(source)
    try:
        if hasattr(source, "runtime_executable"):
            return _find_in_executable(source.runtime_executable(), name, _buffer_assignment(source))
        if hasattr(source, "compiler_ir"):
            return [_read_module(source.compiler_ir(dialect="hlo"), name)]
        if hasattr(source, "hlo_modules"):
            return _find_in_executable(source, name, b"")
        if hasattr(source, "as_serialized_hlo_module_proto"):
            return [_read_module(source, name)]
    except RuntimeError as error:
        raise HloError(name, f"does not give its HLO: {error}", _DUMP_ADVICE) from error
    raise HloError(
        name,
        "is nothing that holds HLO",
        "Give a compiled or lowered JAX function (jax.jit(f).lower(x).compile()), a path, bytes or HLO text",
    )


def _read_module(module: Any, source: str) -> _Found:
    return _Found(read(module.as_serialized_hlo_module_proto(), source), source, "")


def _find_in_executable(executable: Any, source: str, buffer_assignment: bytes) -> list[_Found]:
    platform = getattr(getattr(executable, "client", None), "platform", "")
    found = [_read_module(module, source)._replace(platform=platform) for module in executable.hlo_modules()]
    if not found:
        raise HloError(source, "its executable has no HLO modules", _DUMP_ADVICE)
    if len(found) == 1 and buffer_assignment:
        found = [found[0]._replace(program=found[0].program.with_buffer_assignment(buffer_assignment))]
    return found


def _buffer_assignment(compiled: Any) -> bytes:
    """The serialized buffer assignment that a `Compiled` tells with its memory figures; b"" if it does not."""
    serialized: bytes = getattr(compiled.memory_analysis(), "serialized_buffer_assignment_proto", b"")
    return serialized
