"""A trace for Perfetto: instructions, live bytes, and every buffer as a slice.

A position in the schedule takes a microsecond. Buffers of a band are laid out on as few tracks as hold them without
overlap, the largest on the first ones. The format: https://perfetto.dev/docs/reference/synthetic-track-event.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator

import numpy as np

from xla_stalloc.report.exports.schema import perfetto_pb2
from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.labels import Labels, labels

_NANOSECONDS = 1_000  # of a position in the schedule
_SEQUENCE = 1
_PROCESS, _INSTRUCTIONS, _LIVE, _FIRST_LANE = 1, 2, 3, 1_000
_INCREMENTAL_STATE_CLEARED = 1
_EVENT = perfetto_pb2.TrackEvent


def export(drawn: MemoryMap) -> bytes:
    """The serialized trace."""
    trace = _Trace()
    trace.track(_PROCESS, "").process.CopyFrom(
        perfetto_pb2.ProcessDescriptor(pid=1, process_name=f"{drawn.module} ({drawn.title})")
    )
    live = trace.track(_LIVE, "live temp bytes", _PROCESS)
    live.counter.unit = perfetto_pb2.CounterDescriptor.UNIT_SIZE_BYTES
    trace.track(_INSTRUCTIONS, "instructions", _PROCESS)
    for time, count in enumerate(drawn.live.tolist()):
        trace.event(time, _LIVE, _EVENT.TYPE_COUNTER).counter_value = count
    for time, name in enumerate(drawn.instructions):
        trace.event(time, _INSTRUCTIONS, _EVENT.TYPE_SLICE_BEGIN).name = name
        trace.event(time + 1, _INSTRUCTIONS, _EVENT.TYPE_SLICE_END)
    _buffers(trace, drawn, labels(drawn))
    return trace.serialized()


def _buffers(trace: _Trace, drawn: MemoryMap, told: Labels) -> None:
    track = _FIRST_LANE
    for number, band in enumerate(drawn.bands):
        if not band.size:
            continue
        group, track = track, track + 1
        trace.track(group, band.name, _PROCESS)
        for place, lane in enumerate(_lanes(drawn, number)):
            trace.track(track, f"{band.name} {place}", group)
            for box in lane:
                _buffer(trace, track, drawn, told, box)
            track += 1


def _buffer(trace: _Trace, track: int, drawn: MemoryMap, told: Labels, box: int) -> None:
    begin = trace.event(int(drawn.start[box]), track, _EVENT.TYPE_SLICE_BEGIN)
    begin.name = told.name[box]
    begin.categories.append("buffer")
    for name, count in (("bytes", drawn.bytes), ("padding", drawn.size - drawn.bytes), ("address", drawn.address)):
        begin.debug_annotations.add(name=name, int_value=int(count[box]))
    for name in ("shape", "source", "op_name", "stack"):
        if text := getattr(told, name)[box]:
            begin.debug_annotations.add(name=name, string_value=text)
    trace.event(int(drawn.end[box]), track, _EVENT.TYPE_SLICE_END)


def _lanes(drawn: MemoryMap, band: int) -> Iterator[list[int]]:
    """The boxes of a band in rows that have one box at a time each, by start; first come, first served by size."""
    boxes = np.flatnonzero((drawn.band == band) & (drawn.end > drawn.start))
    lanes: list[list[tuple[int, int, int]]] = []
    for box in boxes[np.argsort(-drawn.bytes[boxes], kind="stable")].tolist():
        start, end = int(drawn.start[box]), int(drawn.end[box])
        lane = next((lane for lane in lanes if _is_free(lane, start, end)), None)
        if lane is None:
            lanes.append(lane := [])
        insort(lane, (start, end, box))
    yield from ([box for _, _, box in lane] for lane in lanes)


def _is_free(lane: list[tuple[int, int, int]], start: int, end: int) -> bool:
    place = bisect_right(lane, (end, 0, 0))  # what is before begins earlier than this ends
    return place == 0 or lane[place - 1][1] <= start


class _Trace:
    """Packets in the making. Perfetto wants those of a sequence in the order of time; tracks come first."""

    def __init__(self) -> None:
        self._tracks: list[perfetto_pb2.TracePacket] = []
        self._events: list[perfetto_pb2.TracePacket] = []

    def track(self, uuid: int, name: str, parent: int = 0) -> perfetto_pb2.TrackDescriptor:
        packet = perfetto_pb2.TracePacket(trusted_packet_sequence_id=_SEQUENCE)
        if not self._tracks:
            packet.sequence_flags = _INCREMENTAL_STATE_CLEARED
        packet.track_descriptor.uuid = uuid
        if name:
            packet.track_descriptor.name = name
        if parent:
            packet.track_descriptor.parent_uuid = parent
        self._tracks.append(packet)
        return packet.track_descriptor

    def event(self, time: int, track: int, kind: perfetto_pb2.TrackEvent.Type) -> perfetto_pb2.TrackEvent:
        packet = perfetto_pb2.TracePacket(timestamp=time * _NANOSECONDS, trusted_packet_sequence_id=_SEQUENCE)
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        self._events.append(packet)
        return packet.track_event

    def serialized(self) -> bytes:
        """All packets; at each time slices end before others begin."""
        order = sorted(
            self._events, key=lambda event: (event.timestamp, event.track_event.type != _EVENT.TYPE_SLICE_END)
        )
        found: bytes = perfetto_pb2.Trace(packet=[*self._tracks, *order]).SerializeToString()
        return found
