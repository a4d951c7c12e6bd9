"""What is live at the peak, grouped: by what it holds, by layer, by operation and by source line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from xla_stalloc.report.model import Group, LiveBuffer
from xla_stalloc.report.sources import shortened

_UNKNOWN = "(unknown)"

GROUPINGS: Mapping[str, Callable[[LiveBuffer], str]] = {
    "role": lambda buffer: buffer.role,
    "layer": lambda buffer: buffer.layer,
    "op": lambda buffer: operation(buffer),
    "source": lambda buffer: shortened(buffer.source) if buffer.source else "",
}


def operation(buffer: LiveBuffer) -> str:
    """The operation of the user's program that wrote a buffer, ``dot_general`` for instance; of an argument, that."""
    if buffer.kind == "argument" or "/" not in buffer.op_name:
        return "argument" if buffer.kind in ("argument", "donated") else ""
    return buffer.op_name.rpartition("/")[2]


def grouped(live: Iterable[LiveBuffer], by: str) -> tuple[Group, ...]:
    """Groups, largest first.

    Args:
        live: buffers.
        by: one of `GROUPINGS`.
    """
    bytes_of: dict[str, int] = {}
    count_of: dict[str, int] = {}
    tell = GROUPINGS[by]
    for buffer in live:
        name = tell(buffer) or _UNKNOWN
        bytes_of[name] = bytes_of.get(name, 0) + buffer.bytes
        count_of[name] = count_of.get(name, 0) + 1
    names = sorted(bytes_of, key=lambda name: (-bytes_of[name], name))
    return tuple(Group(name, bytes_of[name], count_of[name]) for name in names)
