"""The C functions of ``libpjrt_stalloc.so`` (``plugins/pjrt/control.h``)."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class NoLibraryError(RuntimeError):
    """This installation has no ``libpjrt_stalloc.so``, which is built on Linux only."""


class Figures(ctypes.Structure):
    """What has passed through the wrapped plugin since the process began; counts."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "clients",
            "compiles",
            "loads",
            "executions",
            "uploads",
            "buffers_destroyed",
            "programs",
            "loaded_executables",
            "live_blocks",
            "lost_launches",
        )
    ]


class Event(ctypes.Structure):
    """A request for device memory, or a release: then only `address` is set.

    ``program`` is the executable's fingerprint, 0 outside of executions; ``allocation`` counts the requests of one
    execution on one device.
    """

    _fields_ = [
        (name, ctypes.c_uint64) for name in ("program", "execution", "device", "allocation", "address", "bytes")
    ]


class Memory(ctypes.Structure):
    """Device memory as it was counted where it is allocated; bytes, but for `num_allocs`."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("bytes_in_use", "peak_bytes_in_use", "num_allocs", "largest_alloc_size", "bytes_limit")
    ]


def path() -> Path:
    """The shared library, beside this package.

    Raises:
        NoLibraryError: It is not there.
    """
    # An editable install keeps what it builds in another folder than the sources.
    package = importlib.util.find_spec("xla_stalloc")
    for folder in (package.submodule_search_locations or []) if package else []:
        if (found := Path(folder) / "libpjrt_stalloc.so").is_file():
            return found
    raise NoLibraryError(
        "libpjrt_stalloc.so is missing from this installation of xla_stalloc: it is built on Linux by "
        "`pip install xla_stalloc`; install it again"
    )


@functools.cache
def library() -> Any:
    """The copy of the library that acts for this process, loaded at the first call."""
    own = _declare(ctypes.CDLL(str(path()), mode=os.RTLD_NOW | os.RTLD_LOCAL))
    acting = os.fsdecode(own.stalloc_acting_path())
    return own if not acting or acting == str(path()) else _declare(ctypes.CDLL(acting))


def _declare(library: Any) -> Any:
    text = ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "stalloc_wrap": (None, [text, text]),
        "stalloc_attach": (text, [text]),
        "stalloc_calibration_bytes": (ctypes.c_uint64, []),
        "stalloc_calibration_begin": (None, []),
        "stalloc_calibration_end": (ctypes.c_int, []),
        "stalloc_execution_begin": (ctypes.c_void_p, [ctypes.c_uint64, ctypes.c_uint32]),
        "stalloc_execution_end": (None, [ctypes.c_void_p, ctypes.c_int]),
        "stalloc_program_is_known": (ctypes.c_int, [ctypes.c_uint64]),
        "stalloc_memory_problem": (text, []),
        "stalloc_acting_path": (text, []),
        "stalloc_read_figures": (None, [ctypes.POINTER(Figures)]),
        "stalloc_record": (None, [ctypes.c_int]),
        "stalloc_take_events": (ctypes.c_uint64, [ctypes.POINTER(Event), ctypes.c_uint64]),
        "stalloc_read_memory": (ctypes.c_int, [ctypes.c_int64, ctypes.POINTER(Memory)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def figures() -> dict[str, int]:
    """The counts of `Figures` as of now."""
    read = Figures()
    library().stalloc_read_figures(ctypes.byref(read))
    return _as_dict(read)


def memory(device: int) -> dict[str, int] | None:
    """The figures of `Memory` as of now, in bytes.

    Args:
        device: Position among the addressable devices; -1 for memory whose device is not known.

    Returns:
        None if there never was such a device.
    """
    read = Memory()
    return _as_dict(read) if library().stalloc_read_memory(device, ctypes.byref(read)) else None


@contextmanager
def recording() -> Iterator[list[dict[str, int]]]:
    """Notes every request for device memory and every release, in order, until the context ends.

    The list is filled when it ends: one dict of `Event`'s fields for each.
    """
    events: list[dict[str, int]] = []
    library().stalloc_record(1)
    try:
        yield events
    finally:
        chunk = (Event * 4096)()
        while count := library().stalloc_take_events(chunk, len(chunk)):
            events.extend(_as_dict(event) for event in chunk[:count])
        library().stalloc_record(0)


def memory_problem() -> str:
    """Why the plugin does not count and serve device memory, or ``""``."""
    return str(library().stalloc_memory_problem().decode())


def _as_dict(read: ctypes.Structure) -> dict[str, int]:
    return {field[0]: int(getattr(read, field[0])) for field in read._fields_}
