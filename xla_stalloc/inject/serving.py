"""Serves device memory from arenas, by a plan of the job (``plugins/arena``)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xla_stalloc.inject import native

ADDRESSES = 1 << 38  # bytes of address space per device; the system backs a page when it is first written


class ServingError(RuntimeError):
    """The plan cannot be served, or nothing can be served here; everything stays as it is."""


class Plan(Protocol):
    """Where each allocation of each execution goes, on every device alike.

    Attributes:
        programs: The program of each run: the ``program`` of `native.Event` as 16 hexadecimal digits.
        cycle: The run that follows the last one.
        run_slots: int64[runs], executions that each run takes in turns.
        repeats: bool[runs], whether the turns go on for as long as the program runs.
        slot_blocks: int64[slots], allocations of each execution.
        offsets: int64[blocks], bytes.
        sizes: int64[blocks], bytes.
        height: Bytes of the planned region.
    """

    programs: Sequence[str]
    cycle: int
    run_slots: Any
    repeats: Any
    slot_blocks: Any
    offsets: Any
    sizes: Any
    height: int


class _Tables(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("height", "cycle", "runs", "slots", "blocks")),
        *(
            (name, ctypes.c_void_p)
            for name in ("run_programs", "run_slots", "run_repeats", "slot_blocks", "block_offsets", "block_bytes")
        ),
    ]


class Arena(ctypes.Structure):
    """What an arena served; counts and bytes. A hit lies where the plan says; the rest went to gaps, or above."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "requests",
            "hits",
            "unknown_program",
            "unknown_index",
            "unfit",
            "occupied",
            "in_gaps",
            "in_overflow",
            "failures",
            "live_blocks",
            "in_use_bytes",
            "peak_in_use_bytes",
            "reserved_bytes",
            "peak_reserved_bytes",
        )
    ]


def serve(plan: Plan, *, devices: int = 1, addresses: int = ADDRESSES, debug: bool = False) -> None:
    """Serves every request of the host's devices from now on; what lives already goes back to where it came from.

    Args:
        plan: Each device has an arena of its own, by the same plan.
        devices: How many, by their position among the addressable ones.
        addresses: Bytes of address space of each arena.
        debug: With canaries, poison on release, and a second account of what lives.

    Raises:
        ServingError: The plan contradicts itself, memory is not served here, or the library was built without arenas.
    """
    library = native.library()
    if not hasattr(library, "stalloc_serve"):
        raise ServingError("libpjrt_stalloc.so was built without plugins/arena")
    if problem := native.memory_problem():
        raise ServingError(problem)
    columns = [
        np.ascontiguousarray(column, np.uint64)
        for column in (
            [int(program, 16) for program in plan.programs],
            plan.run_slots,
            plan.repeats,
            plan.slot_blocks,
            plan.offsets,
            plan.sizes,
        )
    ]
    programs, run_slots, _, slot_blocks, offsets, sizes = columns
    if not (len({len(programs), len(run_slots), len(columns[2])}) == 1 and len(offsets) == len(sizes)):
        raise ServingError("columns of one table of the plan differ in length")
    if int(run_slots.sum()) != len(slot_blocks) or int(slot_blocks.sum()) != len(offsets):
        raise ServingError("the plan's runs, slots and blocks do not add up")
    pointers = [column.ctypes.data for column in columns]
    tables = _Tables(plan.height, plan.cycle, len(programs), len(slot_blocks), len(offsets), *pointers)
    library.stalloc_serve.restype = ctypes.c_char_p
    library.stalloc_serve.argtypes = [ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(_Tables), ctypes.c_int]
    if problem := library.stalloc_serve(devices, addresses, ctypes.byref(tables), int(debug)).decode():
        raise ServingError(problem)


def figures(device: int = 0) -> dict[str, int]:
    """The figures of `Arena` for one device.

    Raises:
        ServingError: No arena serves that device.
    """
    read = Arena()
    if not native.library().stalloc_read_arena(ctypes.c_uint32(device), ctypes.byref(read)):
        raise ServingError(f"no arena serves device {device}")
    return {str(field[0]): int(getattr(read, field[0])) for field in Arena._fields_}
