"""What is live at the peak, by call stack, as pprof reads it: `go tool pprof -top peak.pb.gz`.

The format: https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

import gzip

import numpy as np

from xla_stalloc.hlo import SourceLocation
from xla_stalloc.report.exports.schema import pprof_pb2
from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.labels import labels


def export(drawn: MemoryMap) -> bytes:
    """A gzipped profile with a sample for each buffer that is live at the peak: one object, and its bytes."""
    profile = _Profile()
    told = labels(drawn)
    profile.message.sample_type.add(type=profile.text("live_objects"), unit=profile.text("count"))
    profile.message.sample_type.add(type=profile.text("live_space"), unit=profile.text("bytes"))
    profile.message.default_sample_type = profile.text("live_space")
    profile.message.comment.append(profile.text(f"{drawn.module} ({drawn.title}), live while {drawn.peak_at} runs"))
    for box in np.flatnonzero((drawn.start <= drawn.peak_time) & (drawn.peak_time < drawn.end)).tolist():
        sample = profile.message.sample.add(value=[1, int(drawn.bytes[box])])
        instruction = drawn.values[box].instruction
        # A buffer that nothing is known of, an argument say, is its own place.
        stack = instruction.source_stack or (SourceLocation(drawn.module, 0, told.source[box] or instruction.name),)
        sample.location_id.extend(profile.location(frame) for frame in stack)
        for key, text in (("band", told.band[box]), ("shape", told.shape[box]), ("buffer", told.name[box])):
            sample.label.add(key=profile.text(key), str=profile.text(text))
        sample.label.add(key=profile.text("bytes"), num=int(drawn.bytes[box]), num_unit=profile.text("bytes"))
    return gzip.compress(profile.message.SerializeToString(deterministic=True), mtime=0)


class _Profile:
    """A profile in the making, each text, function and location in it once."""

    def __init__(self) -> None:
        self.message = pprof_pb2.Profile(string_table=[""])
        self._texts = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[tuple[int, int], int] = {}

    def text(self, text: str) -> int:
        """Its place in the table of texts."""
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            self.message.string_table.append(text)
        return self._texts[text]

    def location(self, frame: SourceLocation) -> int:
        """The id of a line of a function; ids begin at 1."""
        key = (self._function(frame), frame.line)
        if key not in self._locations:
            self._locations[key] = len(self._locations) + 1
            self.message.location.add(id=self._locations[key]).line.add(function_id=key[0], line=frame.line)
        return self._locations[key]

    def _function(self, frame: SourceLocation) -> int:
        key = (frame.function or f"{frame.file}:{frame.line}", frame.file)
        if key not in self._functions:
            self._functions[key] = len(self._functions) + 1
            name = self.text(key[0])
            self.message.function.add(
                id=self._functions[key], name=name, system_name=name, filename=self.text(frame.file)
            )
        return self._functions[key]
