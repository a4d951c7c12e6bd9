"""Runs two thunk sequences that differ in the offsets of temporaries, on what is known about their memories.

An induction over the thunks shows that all values are equal: whatever a thunk reads is known to be the same in both, so
what it writes is the same again. Known is, of every byte of either memory, how far apart the two programs put it when
it was last written. A slice holds the same value in both if all of its bytes, in the one memory and in the other, were
last written with the distance of the slice itself: then it was the same write. Where control flow joins, only what is
known on every path remains; loops are repeated until that does not change.

What is read and what is written goes by the names of the fields, found by reflection: no slice can be overlooked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable.errors import RewriteError

_ALIGNMENT = 64
_UNKNOWN = np.iinfo(np.int64).min

# fmt: off
_READ = frozenset((
    "arguments_buffers", "arguments_shapes", "branch_index_buffer", "cond_buffer", "input_buffer_shape",
    "inputs_shapes", "kernel_buffer_shape", "lhs_buffer_shape", "outfeed_buffers_shapes", "rhs_buffer_shape",
    "source_shapes_buffer_slices", "src_buffer_shape", "values_buffer",
))
_WRITTEN = frozenset((
    "dest_buffer", "destination_shapes_buffer_slices", "dst_buffer_shape", "indices_buffer", "infeed_buffers_shapes",
    "inputs_shapes", "logical_id_buffer", "out_buffer_shape", "output_buffer", "output_buffer_shape",
    "results_buffers", "results_shapes", "state_buffer",
))
# fmt: on


def check(old: schema.ThunkSequenceProto, new: schema.ThunkSequenceProto, temp: int, size: int) -> None:
    """Checks that a rewritten thunk sequence computes what the old one does.

    Args:
        old: The original.
        new: The same with other offsets in one allocation; gets the old ones back.
        temp: The index of that allocation.
        size: Its new size in bytes.

    Raises:
        RewriteError: It differs in more than offsets, or might compute something else; says where.
    """
    walk = _Walk(temp, size)
    steps = walk.steps(old, new)
    if old != new:
        raise RewriteError("the thunks differ in more than the offsets of temporaries")
    simulation = _Simulation(sorted(walk.old_cuts), sorted(walk.new_cuts))
    simulation.run(steps, simulation.nothing())


class _Slice(NamedTuple):
    """A slice of temporaries: where it begins in both programs."""

    old: int
    new: int
    size: int
    is_read: bool
    is_written: bool


@dataclass(slots=True)
class _Step:
    """A thunk of both programs."""

    name: str
    kind: str
    slices: list[_Slice] = field(default_factory=list)
    nested: list[list[_Step]] = field(default_factory=list)
    is_counted: bool = False  # a loop whose number of rounds is known: XLA may skip its condition

    def error(self, text: str) -> RewriteError:
        return RewriteError(f"{self.name} ({self.kind}) {text}")


class _Walk:
    """Walks over two thunk sequences at once."""

    def __init__(self, temp: int, size: int) -> None:
        self._temp = temp
        self._size = size
        self.old_cuts = {0}  # where slices begin and end
        self.new_cuts = {0}

    def steps(self, old: schema.ThunkSequenceProto, new: schema.ThunkSequenceProto) -> list[_Step]:
        if len(old.thunks) != len(new.thunks):
            raise RewriteError("the number of thunks differs")
        return [self._step(*thunks) for thunks in zip(old.thunks, new.thunks, strict=True)]

    def _step(self, old: schema.ThunkProto, new: schema.ThunkProto) -> _Step:
        step = _Step(old.info.op_name, old.WhichOneof("impl") or "thunk of no kind")
        step.is_counted = old.while_thunk.trip_count.contains_value
        self._collect(step, old, new, "")
        for number, one in enumerate(step.slices):
            for other in step.slices[:number]:
                # Kernels are compiled for the overlaps of their slices.
                old_distance, new_distance = one.old - other.old, one.new - other.new
                if old_distance != new_distance and (
                    -one.size < old_distance < other.size or -one.size < new_distance < other.size
                ):
                    raise step.error("has slices that overlap otherwise than before")
        return step

    def _collect(self, step: _Step, old: Any, new: Any, name: str) -> None:
        """What is in a message of the old program and its twin of the new one; `name` is that of their field."""
        if isinstance(old, schema.SliceProto):
            self._add(step, old, new, name)
        elif isinstance(old, schema.ThunkSequenceProto):
            step.nested.append(self.steps(old, new))
        else:
            for (inner, one), (twin, other) in zip(_messages(old), _messages(new), strict=False):
                if inner != twin:
                    raise step.error(f"has {twin} in the place of {inner}")
                # The slice within a shaped slice says nothing by its own name.
                self._collect(step, one, other, name if inner == "slice" else inner)

    def _add(self, step: _Step, old: schema.SliceProto, new: schema.SliceProto, name: str) -> None:
        if name not in _READ | _WRITTEN:
            raise step.error(f"has slices as {name}: whether these are read or written is not known")
        if old.buffer_allocation_index != self._temp:
            return
        if not 0 <= new.offset <= self._size - new.size:
            raise step.error(f"has a slice as {name} that does not lie within the {self._size} bytes of temporaries")
        if old.size:
            if (old.offset - new.offset) % _ALIGNMENT:
                raise step.error(f"has a slice as {name} that is not aligned as before")
            step.slices.append(_Slice(old.offset, new.offset, old.size, name in _READ, name in _WRITTEN))
            self.old_cuts |= {old.offset, old.offset + old.size}
            self.new_cuts |= {new.offset, new.offset + old.size}
        new.offset = old.offset


def _messages(message: Any) -> Iterator[tuple[str, Any]]:
    """The messages right inside a message, each with the name of its field."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for inner in [value] if isinstance(value, Message) else value:
                yield descriptor.name, inner


class _Known(NamedTuple):
    """The distance with which each piece of memory was last written; pieces lie between neighbouring cuts."""

    old: NDArray[np.int64]
    new: NDArray[np.int64]

    def copy(self) -> _Known:
        return _Known(self.old.copy(), self.new.copy())

    def on_both_paths(self, other: _Known) -> _Known:
        return _Known(*(np.where(a == b, a, _UNKNOWN) for a, b in zip(self, other, strict=True)))

    def same(self, other: _Known) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(self, other, strict=True))


class _Simulation:
    """Runs steps on what is known; a run changes what it is given."""

    def __init__(self, old_cuts: list[int], new_cuts: list[int]) -> None:
        self._old = {cut: piece for piece, cut in enumerate(old_cuts)}
        self._new = {cut: piece for piece, cut in enumerate(new_cuts)}

    def nothing(self) -> _Known:
        return _Known(np.full(len(self._old), _UNKNOWN), np.full(len(self._new), _UNKNOWN))

    def run(self, steps: list[_Step], known: _Known) -> _Known:
        for step in steps:
            if step.kind == "while_thunk":
                known = self._loop(step, known)
                continue
            self._check_reads(step, known)
            if step.kind == "conditional_thunk":
                paths = [self.run(branch, known.copy()) for branch in step.nested]
                known = functools.reduce(_Known.on_both_paths, paths, paths.pop()) if paths else known
            elif step.nested:
                known = self.run(step.nested[0], known)
            for written in (s for s in step.slices if s.is_written):
                old, new = self._pieces(written, known)
                old[:] = new[:] = written.new - written.old
        return known

    def _loop(self, step: _Step, head: _Known) -> _Known:
        if len(step.nested) != 2:
            raise step.error("has no condition or no body")
        condition, body = step.nested
        while True:
            decided = self.run(condition, head.copy())
            self._check_reads(step, decided)
            if step.is_counted:
                decided = decided.on_both_paths(head)
            again = head.on_both_paths(self.run(body, decided.copy()))
            if again.same(head):
                return decided
            head = again

    def _check_reads(self, step: _Step, known: _Known) -> None:
        for read in (s for s in step.slices if s.is_read):
            if not all((pieces == read.new - read.old).all() for pieces in self._pieces(read, known)):
                raise step.error(f"might read another value than before at {read.new}, where it has {read.size} bytes")

    def _pieces(self, slice_: _Slice, known: _Known) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What is known of the bytes of a slice, in both memories."""
        return (
            known.old[self._old[slice_.old] : self._old[slice_.old + slice_.size]],
            known.new[self._new[slice_.new] : self._new[slice_.new + slice_.size]],
        )
