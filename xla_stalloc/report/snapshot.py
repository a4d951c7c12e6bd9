"""The arrays that are alive in this process, and the bytes they hold on each device."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jaxlib

from xla_stalloc.plan.explain import size
from xla_stalloc.report.sources import shortened

SCHEMA = 1
"""Version of the JSON form; new keys do not raise it."""
_JAX = tuple(str(Path(package.__path__[0])) + "/" for package in (jax, jaxlib))


@dataclass(frozen=True, slots=True)
class LiveArray:
    """An array that is alive.

    Attributes:
        shape: of the whole array, over all devices.
        dtype: its name.
        sharding: how it lies on its devices, as JAX prints it.
        origin: ``file:line`` that made it, the innermost outside of JAX; ``""`` if JAX kept none.
        bytes_per_device: on each device of this process, in its layout there. Memory that an array counted before it
            holds already is not counted again.
    """

    shape: tuple[int, ...]
    dtype: str
    sharding: str
    origin: str
    bytes_per_device: dict[str, int]

    @property
    def bytes(self) -> int:
        """Over the devices of this process."""
        return sum(self.bytes_per_device.values())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was alive at one moment.

    Attributes:
        arrays: largest first.
    """

    arrays: tuple[LiveArray, ...]

    @property
    def bytes_per_device(self) -> dict[str, int]:
        """Bytes of all arrays on each device that has some."""
        total: Counter[str] = Counter()
        for array in self.arrays:
            total.update(array.bytes_per_device)
        return dict(sorted(total.items()))

    @property
    def bytes(self) -> int:
        """Over all devices of this process."""
        return sum(array.bytes for array in self.arrays)

    @property
    def bytes_by_origin(self) -> dict[str, int]:
        """Bytes by the line that made them, largest first."""
        total: Counter[str] = Counter()
        for array in self.arrays:
            total[array.origin] += array.bytes
        return dict(total.most_common())

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes."""
        arrays = [{**dataclasses.asdict(array), "bytes": array.bytes} for array in self.arrays]
        return {"schema": SCHEMA, "bytes": self.bytes, "bytes_per_device": self.bytes_per_device, "arrays": arrays}

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def to_text(self, top: int = 20) -> str:
        """Sums, and a table of the `top` largest arrays."""
        return "\n".join(self._lines(top)) + "\n"

    def __str__(self) -> str:
        """The same as `to_text`."""
        return self.to_text()

    def _lines(self, top: int) -> Iterator[str]:
        yield f"{len(self.arrays)} live arrays, {size(self.bytes)}"
        yield from (f"  {device}: {size(count)}" for device, count in self.bytes_per_device.items())
        header = ("bytes", "a device", "array", "made at", "sharding")
        rows = [header]
        for array in self.arrays[:top]:
            largest = max(array.bytes_per_device.values(), default=0)
            kind = f"{array.dtype}[{','.join(map(str, array.shape))}]"
            rows.append((size(array.bytes), size(largest), kind, shortened(array.origin), array.sharding))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                cell.rjust(w) if n < 2 else cell.ljust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            yield "  ".join(cells).rstrip()
        if rest := self.arrays[top:]:
            yield f"and {len(rest)} smaller ones, {size(sum(array.bytes for array in rest))} together"


def snapshot() -> Snapshot:
    """The arrays that are alive now on the devices of this process; deleted and donated ones are not."""
    found = [array for array in jax.live_arrays() if not array.is_deleted()]
    # The shards of an array are arrays themselves once somebody has asked for them: the whole one is counted first.
    found.sort(key=lambda array: -len(array.sharding.device_set))
    counted: set[tuple[str, int]] = set()
    arrays = [_describe(array, counted) for array in found]
    return Snapshot(tuple(sorted(arrays, key=lambda array: -array.bytes)))


def live_bytes() -> Counter[str]:
    """Bytes of all live arrays by device, without what a snapshot tells of each."""
    return Counter(snapshot().bytes_per_device)


def _describe(array: jax.Array, counted: set[tuple[str, int]]) -> LiveArray:
    sharding = array.sharding
    share = array.on_device_size_in_bytes() // len(sharding.device_set)
    held: dict[str, int] = {}
    for number, device in enumerate(_devices(array)):
        place = (str(device), _address(array, number))
        held[str(device)] = 0 if place in counted and place[1] else share
        counted.add(place)
    return LiveArray(tuple(array.shape), str(array.dtype), _sharding(sharding), _origin(array), held)


def _devices(array: jax.Array) -> list[jax.Device]:
    """The devices of this process, in the order of the array's shards."""
    mine = array.sharding.addressable_devices
    indices = array.sharding.devices_indices_map(array.shape)
    return [device for device in indices if device in mine]


def _address(array: jax.Array, number: int) -> int:
    """Where a shard lies; 0 if the platform does not tell."""
    try:
        return int(array.addressable_data(number).unsafe_buffer_pointer())
    except (RuntimeError, NotImplementedError, ValueError):
        return 0


def _sharding(sharding: jax.sharding.Sharding) -> str:
    if isinstance(sharding, jax.sharding.NamedSharding):
        axes = ", ".join(f"{name}={length}" for name, length in sharding.mesh.shape.items())
        return f"{sharding.spec} on {axes}"
    if isinstance(sharding, jax.sharding.SingleDeviceSharding):
        return ""
    return str(sharding)


def _origin(array: jax.Array) -> str:
    made = getattr(array, "traceback", None)  # not part of JAX's documented surface
    for frame in made.frames if made is not None else ():
        if not frame.file_name.startswith(_JAX):
            return f"{frame.file_name}:{frame.line_num}"
    return ""
