"""A snapshot as PyTorch's CUDA caching allocator takes it, for its viewer and `torch.cuda._memory_viz`.

The form is that of `torch.cuda.memory._snapshot()`: segments as they are at the end, and what happened before, event by
event. Each band of the map is a segment; a microsecond is a position in the schedule.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from xla_stalloc.hlo import SourceLocation
from xla_stalloc.report.map.boxes import Band, MemoryMap
from xla_stalloc.report.map.labels import labels

_FIRST_ADDRESS = 1 << 32  # viewers take address 0 for none
_FRAMES = 24
_POOL = (0, 0)
_ALLOC, _FREE = 1, 0


def export(drawn: MemoryMap) -> bytes:
    """The pickle; it holds nothing but plain numbers, texts, lists and dictionaries."""
    frames = _frames(drawn)
    content = {
        "segments": [_segment(drawn, number, band, frames) for number, band in enumerate(drawn.bands) if band.size],
        "device_traces": [[*_reserved(drawn), *_events(drawn, frames)]],
        "allocator_settings": {},
        "external_annotations": [],
    }
    return pickle.dumps(content, protocol=4)


def _frames(drawn: MemoryMap) -> list[list[dict[str, Any]]]:
    """Of each box: the instruction, then the user's call stack."""
    stacks: dict[tuple[SourceLocation, ...], list[dict[str, Any]]] = {}
    found = []
    for name, value in zip(labels(drawn).name, drawn.values, strict=True):
        stack = value.instruction.source_stack[:_FRAMES]
        if stack not in stacks:
            stacks[stack] = [_frame(frame.file, frame.line, frame.function) for frame in stack]
        found.append([_frame(value.instruction.op_name or drawn.module, 0, f"{name} {value.shape}"), *stacks[stack]])
    return found


def _frame(file: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": file, "line": line, "name": name}


def _reserved(drawn: MemoryMap) -> list[dict[str, Any]]:
    return [
        _event("segment_alloc", _FIRST_ADDRESS + band.base, band.size, 0, [_frame(drawn.module, 0, band.name)])
        for band in drawn.bands
        if band.size
    ]


def _events(drawn: MemoryMap, frames: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Allocations and frees; at each time, what goes makes room for what comes."""
    shown = np.flatnonzero(drawn.end > drawn.start)
    times = np.concatenate([drawn.end[shown], drawn.start[shown]])
    kinds = np.repeat([_FREE, _ALLOC], len(shown))
    boxes = np.concatenate([shown, shown])
    found = []
    for place in np.lexsort((kinds, times)).tolist():
        box, time = int(boxes[place]), int(times[place])
        address, size = _FIRST_ADDRESS + int(drawn.address[box]), int(drawn.size[box])
        if kinds[place] == _ALLOC:
            found.append(_event("alloc", address, size, time, frames[box]))
        elif time < len(drawn.live):  # what is there at the end stays
            found += [_event(f"free_{step}", address, size, time, frames[box]) for step in ("requested", "completed")]
    return found


def _event(action: str, address: int, size: int, time: int, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}


def _segment(drawn: MemoryMap, number: int, band: Band, frames: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    """A band as it is at the end of the program."""
    at_end = (drawn.band == number) & (drawn.end == len(drawn.live)) & (drawn.end > drawn.start)
    blocks, top = list[dict[str, Any]](), 0
    for box in sorted(np.flatnonzero(at_end).tolist(), key=lambda box: int(drawn.address[box])):
        begin = int(drawn.address[box]) - band.base
        if begin > top:
            blocks.append(_block(band, top, begin - top, 0, "inactive", []))
        size = int(drawn.size[box])
        blocks.append(_block(band, begin, size, int(drawn.bytes[box]), "active_allocated", frames[box]))
        top = begin + size
    if top < band.size:
        blocks.append(_block(band, top, band.size - top, 0, "inactive", []))
    live = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
    return {
        "address": _FIRST_ADDRESS + band.base,
        "total_size": band.size,
        "allocated_size": live,
        "active_size": live,
        "requested_size": sum(block["requested_size"] for block in blocks),
        "device": 0,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": _POOL,
        "is_expandable": False,
        "frames": [_frame(drawn.module, 0, band.name)],
        "blocks": blocks,
    }


def _block(
    band: Band, begin: int, size: int, requested: int, state: str, frames: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "address": _FIRST_ADDRESS + band.base + begin,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": frames,
    }
