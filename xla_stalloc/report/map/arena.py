"""Several programs in one arena: one after the other in time, at the same addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xla_stalloc.report.map.boxes import Band, MemoryMap


@dataclass(frozen=True, slots=True)
class Part:
    """One program of an arena: its name, when it begins, and the bytes of its temp allocation."""

    module: str
    start: int
    end: int
    temp_bytes: int


def arena(maps: Sequence[MemoryMap]) -> tuple[MemoryMap, tuple[Part, ...]]:
    """The maps as one, and where each of them is.

    Bands of a name begin at one address, and are as high as the highest of them: what a process has to hold that runs
    one of the programs at a time and keeps nothing between them but what a program takes and gives.
    """
    if len(maps) == 1:
        only = maps[0]
        return only, (Part(only.module, 0, len(only.live), only.temp_bytes),)
    bands = _bands(maps)
    moved, parts, start, blocks = list[MemoryMap](), list[Part](), 0, 0
    for one in maps:
        rebased = _rebased(one, bands)
        moved.append(
            replace(rebased, start=one.start + start, end=one.end + start, block=one.block + blocks, bands=bands)
        )
        parts.append(Part(one.module, start, start + len(one.live), one.temp_bytes))
        start += len(one.live)
        blocks += int(one.block.max(initial=-1)) + 1
    return _joined(moved), tuple(parts)


def aligned(maps: Sequence[MemoryMap]) -> list[MemoryMap]:
    """The maps with their bands at equal addresses, to be seen side by side."""
    bands = _bands(maps)
    return [_rebased(one, bands) for one in maps]


def _bands(maps: Sequence[MemoryMap]) -> tuple[Band, ...]:
    """All bands of the maps, each as high as the highest of its name."""
    sizes: dict[str, int] = {}
    for one in maps:
        for band in one.bands:
            sizes[band.name] = max(sizes.get(band.name, 0), band.size)
    bands, base = list[Band](), 0
    for name, size in sizes.items():
        bands.append(Band(name, base, size))
        base += size
    return tuple(bands)


def _rebased(one: MemoryMap, bands: Sequence[Band]) -> MemoryMap:
    """A map in which each band, of its own size, begins where it does in `bands`."""
    number = {band.name: place for place, band in enumerate(bands)}
    own = {band.name: band.size for band in one.bands}
    shift = np.array([bands[number[band.name]].base - band.base for band in one.bands], np.int64)
    place = np.array([number[band.name] for band in one.bands], np.int64)
    return replace(
        one,
        address=one.address + shift[one.band],
        band=place[one.band],
        bands=tuple(replace(band, size=own.get(band.name, 0)) for band in bands),
    )


def _joined(maps: Sequence[MemoryMap]) -> MemoryMap:
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in maps])
        for name in ("start", "end", "address", "size", "bytes", "band", "block", "live")
    }
    return replace(
        maps[0],
        module=", ".join(dict.fromkeys(one.module for one in maps)),
        # The end of a program is a time of its own, at which no instruction runs.
        instructions=[name for one in maps for name in (*one.instructions, "")][:-1],
        values=[value for one in maps for value in one.values],
        origin=" and ".join(dict.fromkeys(one.origin for one in maps)),
        **arrays,
    )
