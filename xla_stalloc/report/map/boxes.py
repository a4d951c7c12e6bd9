"""A program's memory as boxes: arrays of times and addresses, without a word on how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.hlo import HloError, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import Lifetimes, Value, of
from xla_stalloc.report.map.allocations import (
    BANDS,
    TEMPS,
    Allocation,
    from_emulation,
    from_xla,
    memory_spaces,
)

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Band:
    """A range of addresses that holds one kind of allocation; `base` and `size` in bytes."""

    name: str
    base: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMap:
    """Every buffer of a program as a box: from when until when, and at which addresses.

    Times are positions in the schedule, where callees run just before their callers. Addresses count from the bottom of
    the map, where the temp allocation lies; the other allocations are stacked above it, as `bands`. Boxes do not
    overlap: where a value takes over the memory of another, the other's box ends.

    Attributes:
        module: its name.
        title: what it shows, e.g. ``stock``.
        instructions: names in the order of the schedule.
        bands: from the bottom up.
        values: of each box, the value in it.
        start: of each box, the first time; int64[n].
        end: the first time at which it is gone.
        address: bytes from the bottom of the map.
        size: bytes, padding included.
        bytes: without padding.
        band: number of the band.
        block: number of the block: values with the same number share memory and can only move together.
        live: bytes live in the temp allocation at each time, without padding; int64[instructions + 1].
        origin: ``xla`` if the offsets are XLA's own, ``emulated``, or ``planned``.
        alignment: bytes that offsets in the temp allocation are multiples of.
    """

    module: str
    title: str
    instructions: Sequence[str] = field(repr=False)
    bands: tuple[Band, ...]
    values: Sequence[Value] = field(repr=False)
    start: Int64Array
    end: Int64Array
    address: Int64Array
    size: Int64Array
    bytes: Int64Array
    band: Int64Array
    block: Int64Array
    live: Int64Array
    origin: str
    alignment: int

    @property
    def height(self) -> int:
        """Bytes of all bands."""
        return self.bands[-1].base + self.bands[-1].size

    @property
    def temp_bytes(self) -> int:
        """Height of the temp allocation."""
        return self.bands[0].size

    @property
    def peak_time(self) -> int:
        """When the most temp bytes are live, for the first time."""
        return int(self.live.argmax())

    @property
    def peak_bytes(self) -> int:
        """Most temp bytes that are live at once, without padding."""
        return int(self.live.max())

    @property
    def peak_at(self) -> str:
        """Name of the instruction that runs then; ``""`` at the end of the program."""
        return self.instructions[self.peak_time] if self.peak_time < len(self.instructions) else ""


def memory_map(module: Module, title: str = "stock") -> MemoryMap:
    """The map of a compiled module: XLA's own offsets where the source tells them, else the emulated ones.

    Raises:
        HloError: the module has no schedule, so nothing about its memory is decided.
        UnsupportedModuleError: the module has a form whose memory is not modelled.
    """
    if not module.is_scheduled:
        raise HloError(
            module.source,
            f"module {module.name!r} has no schedule yet, so nothing about its memory is decided",
            "Compile it first: jax.jit(f).lower(x).compile()",
        )
    lifetimes = of(without_barriers(module))
    if module.buffer_assignment is not None:
        return draw(lifetimes, from_xla(module.buffer_assignment, lifetimes), title, "xla")
    assignments = {space: lifetimes.assignment(space) for space in memory_spaces(lifetimes)}
    return draw(lifetimes, from_emulation(lifetimes, assignments), title, "emulated")


def draw(lifetimes: Lifetimes, allocations: Iterable[Allocation], title: str, origin: str) -> MemoryMap:
    """Stacks allocations in bands, and gives each value its times."""
    stacked: dict[str, list[Allocation]] = {band: [] for band in BANDS}
    for allocation in allocations:
        stacked.setdefault(allocation.band, []).append(allocation)
    bands, values, rows = list[Band](), list[Value](), list[tuple[int, ...]]()
    top = 0
    for name, members in stacked.items():
        base = top
        for allocation in members:
            for place in allocation.places:
                if place.size:
                    times, unpadded = lifetimes.live_range(place.value), min(place.value.bytes, place.size)
                    values.append(place.value)
                    rows.append((*times, top + place.offset, place.size, unpadded, len(bands)))
            top += allocation.size
        if top > base or name == TEMPS:
            bands.append(Band(name, base, top - base))
    boxes = np.array(rows, np.int64).reshape(-1, 6)
    order = np.lexsort((boxes[:, 1], boxes[:, 0], boxes[:, 2]))
    start, end, address, sizes, unpadded_sizes, band = boxes[order].T
    values = [values[number] for number in order]
    block = _blocks(lifetimes, values, start, end, address)
    end = _cut(start, end + 1, address)
    moments = len(lifetimes.schedule) + 1
    changes = np.zeros(moments + 1, np.int64)
    # Tables of pointers lie beside the heap, each in memory of its own.
    in_temps = (band == 0) & ~np.array([value.shape.is_tuple for value in values], bool)
    np.add.at(changes, start[in_temps], unpadded_sizes[in_temps])
    np.add.at(changes, end[in_temps], -unpadded_sizes[in_temps])
    return MemoryMap(
        module=lifetimes.module.name,
        title=title,
        instructions=[instruction.name for instruction in lifetimes.schedule],
        bands=tuple(bands),
        values=values,
        start=start,
        end=end,
        address=address,
        size=sizes,
        bytes=unpadded_sizes,
        band=band,
        block=block,
        live=np.cumsum(changes)[:moments],
        origin=origin,
        alignment=lifetimes.alignment,
    )


def _cut(start: Int64Array, end: Int64Array, address: Int64Array) -> Int64Array:
    """Ends of boxes that are sorted by address and start: a value is gone where another takes over its memory."""
    cut = end.copy()
    taken_over = address[:-1] == address[1:]
    cut[:-1][taken_over] = np.minimum(end[:-1], start[1:])[taken_over]
    return cut


def _blocks(
    lifetimes: Lifetimes, values: Sequence[Value], start: Int64Array, end: Int64Array, address: Int64Array
) -> Int64Array:
    """Numbers of what shares memory: values that must, and values of which one takes over where the other is read last.

    Nothing else is ever alive at the same time (ends are inclusive) and at the same address.
    """
    buffer_of = {value.id: number for number, buffer in enumerate(lifetimes.buffers) for value in buffer.values}
    parent = list(range(len(lifetimes.buffers)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = number = parent[parent[number]]
        return number

    buffers = [buffer_of[value.id] for value in values]
    meets = np.flatnonzero((address[:-1] == address[1:]) & (start[1:] <= end[:-1]))
    for number in meets.tolist():
        parent[root(buffers[number + 1])] = root(buffers[number])
    return np.array([root(buffer) for buffer in buffers], np.int64)
