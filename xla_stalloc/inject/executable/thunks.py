"""What each kind of thunk reads and writes, and the program that a thunk sequence is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable.errors import NotRewritableError

_Paths = tuple[str, ...]

_ACCESSES: dict[str, tuple[_Paths, _Paths]] = {
    # kind: (the fields with slices that it reads, those that it writes)
    "call_thunk": ((), ()),
    "collective_thunk": (
        ("op_buffers.source_shapes_buffer_slices",),
        ("op_buffers.destination_shapes_buffer_slices",),
    ),
    "conditional_thunk": (("branch_index_buffer",), ()),
    "convolution_thunk": (("input_buffer_shape", "kernel_buffer_shape"), ("output_buffer_shape",)),
    "copy_thunk": (("src_buffer_shape",), ("dst_buffer_shape",)),
    "custom_call_thunk": (("op_buffers.arguments_shapes",), ("op_buffers.results_shapes",)),
    "dot_thunk": (("lhs_buffer_shape", "rhs_buffer_shape"), ("out_buffer_shape",)),
    "fft_thunk": (("input_buffer_shape",), ("output_buffer_shape",)),
    "infeed_thunk": ((), ("infeed_buffers_shapes",)),
    "kernel_thunk": (("arguments_buffers",), ("results_buffers",)),
    "outfeed_thunk": (("outfeed_buffers_shapes",), ()),
    "partition_id_thunk": ((), ("logical_id_buffer",)),
    "replica_id_thunk": ((), ("logical_id_buffer",)),
    "rng_get_and_update_state_thunk": ((), ("state_buffer",)),
    "rng_seed_thunk": ((), ("dest_buffer",)),
    "sort_thunk": (("inputs_shapes",), ("inputs_shapes",)),  # in place
    "top_k_thunk": (("values_buffer",), ("output_buffer", "indices_buffer")),
    "while_thunk": (("cond_buffer",), ()),
    "xnn_convolution_thunk": (("input_buffer_shape", "kernel_buffer_shape"), ("output_buffer_shape",)),
    "xnn_dot_thunk": (("lhs_buffer_shape", "rhs_buffer_shape"), ("out_buffer_shape",)),
    "xnn_fusion_thunk": (("arguments_shapes",), ("results_shapes",)),
    "ynn_fusion_thunk": (("arguments_shapes",), ("results_shapes",)),
}


class Form(Enum):
    """How a thunk runs what is nested in it."""

    LEAF = "nothing is nested"
    CALL = "one sequence, once"
    CONDITIONAL = "one of the sequences"
    LOOP = "the first sequence; while it says so, the second one and again the first"


_FORMS = {"call_thunk": Form.CALL, "conditional_thunk": Form.CONDITIONAL, "while_thunk": Form.LOOP}


class Site(NamedTuple):
    """A slice of the temp allocation as one thunk names it.

    Attributes:
        number: Of the site in its program.
        begin: First byte.
        end: One after the last byte; never `begin`.
    """

    number: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """One thunk.

    Attributes:
        kind: E.g. ``kernel_thunk``.
        name: Of the instruction, e.g. ``fusion.3``.
        form: How it runs `nested`.
        reads: What it reads: a conditional before, a loop after its nested sequence.
        writes: What it writes, after everything is read.
        nested: The sequences inside.
        counted: A loop whose number of rounds is known: its condition may be skipped.
        leaves: How many leaf thunks there are in it; 1 for a leaf.
    """

    kind: str
    name: str
    form: Form
    reads: tuple[Site, ...]
    writes: tuple[Site, ...]
    nested: tuple[tuple[Step, ...], ...] = ()
    counted: bool = False
    leaves: int = 1


@dataclass(frozen=True)
class Program:
    """A thunk sequence as far as one allocation goes.

    Attributes:
        steps: In the order in which they run.
        slices: By site, the message that holds its offset.
        empty: The messages of slices of no bytes.
    """

    steps: tuple[Step, ...]
    slices: list[schema.SliceProto] = field(repr=False)
    empty: list[schema.SliceProto] = field(repr=False)


def count_leaves(steps: Iterable[Step]) -> int:
    """How many leaf thunks there are in the steps."""
    return sum(step.leaves for step in steps)


def program(sequence: schema.ThunkSequenceProto, allocation: int) -> Program:
    """The program of a thunk sequence on one allocation, which is known by its index.

    Raises:
        NotRewritableError: A kind of thunk that is not known here.
    """
    builder = _Builder(allocation)
    return Program(builder.steps(sequence), builder.slices, builder.empty)


class _Builder:
    """Numbers the slices of one allocation."""

    def __init__(self, allocation: int) -> None:
        self.allocation = allocation
        self.slices: list[schema.SliceProto] = []
        self.empty: list[schema.SliceProto] = []

    def steps(self, sequence: schema.ThunkSequenceProto) -> tuple[Step, ...]:
        return tuple(self._step(thunk) for thunk in sequence.thunks)

    def _step(self, thunk: schema.ThunkProto) -> Step:
        kind, message = _implementation(thunk)
        if kind == "xnn_fusion_thunk":
            kind, message = _implementation(message)
        if kind not in _ACCESSES:
            raise NotRewritableError(f"thunks of kind {thunk.kind or kind!r} are not known here ({thunk.info.op_name})")
        reads, writes = _ACCESSES[kind]
        read = self._sites(message, reads)
        # What is sorted in place is one slice, read and written.
        written = read if reads == writes else self._sites(message, writes)
        form = _FORMS.get(kind, Form.LEAF)
        counted = form is Form.LOOP and message.trip_count.contains_value
        nested = tuple(self.steps(sequence) for sequence in _nested(form, message))
        leaves = 1 if form is Form.LEAF else sum(count_leaves(steps) for steps in nested)
        return Step(kind, thunk.info.op_name, form, read, written, nested, counted, leaves)

    def _sites(self, message: Any, paths: _Paths) -> tuple[Site, ...]:
        return tuple(site for path in paths for slice_ in _slices(message, path) if (site := self._site(slice_)))

    def _site(self, slice_: schema.SliceProto) -> Site | None:
        if slice_.buffer_allocation_index != self.allocation:
            return None
        if not slice_.size:
            self.empty.append(slice_)
            return None
        self.slices.append(slice_)
        return Site(len(self.slices) - 1, slice_.offset, slice_.offset + slice_.size)


def _implementation(message: Any) -> tuple[str, Any]:
    """The kind that a message has chosen among several, "" for none, and what it says about it."""
    kind = message.WhichOneof("impl") or ""
    return kind, getattr(message, kind, None)


def _nested(form: Form, message: Any) -> list[schema.ThunkSequenceProto]:
    match form:
        case Form.CALL:
            return [message.called_sequence]
        case Form.CONDITIONAL:
            return list(message.branch_sequences)
        case Form.LOOP:
            return [message.cond_sequence, message.body_sequence]
    return []


def _slices(message: Any, path: str) -> Iterator[schema.SliceProto]:
    *parents, last = path.split(".")
    for parent in parents:
        message = getattr(message, parent)
    values = getattr(message, last)
    for value in [values] if hasattr(values, "DESCRIPTOR") else values:
        yield value if isinstance(value, schema.SliceProto) else value.slice
