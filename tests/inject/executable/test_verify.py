"""The verifier passes every right placement, and objects to every single slice in the wrong place."""

from __future__ import annotations

import math

import pytest
from small_executables import PROGRAMS, disjoint, serialized, upside_down

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable import framing, side_by_side, thunks
from xla_stalloc.inject.executable.errors import RewriteError
from xla_stalloc.inject.executable.pack import live_bytes, pack
from xla_stalloc.inject.executable.problem import layout
from xla_stalloc.inject.executable.repack import repack
from xla_stalloc.inject.executable.verify import verify

ON_EVERY_JAXLIB = {
    "collective_thunk", "conditional_thunk", "convolution_thunk", "copy_thunk", "custom_call_thunk", "dot_thunk",
    "fft_thunk", "kernel_thunk", "partition_id_thunk", "sort_thunk", "top_k_thunk", "while_thunk",
}  # fmt: skip


def leaves(steps):
    for step in steps:
        yield step
        for nested in step.nested:
            yield from leaves(nested)


@pytest.mark.parametrize("packer", [pack, disjoint, upside_down])
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_placements_pass(name, packer):
    repack(serialized(name), packer, at_most=math.inf)  # verifies


def test_one_slice_moved_is_found_in_real_programs():
    kinds = set()
    for name in PROGRAMS:
        original = serialized(name)
        executable = framing.read(repack(original, disjoint, at_most=math.inf).data)
        temp = executable.temp()
        program = thunks.program(executable.thunks, temp.index)
        for step in leaves(program.steps):
            for site in {*step.reads, *step.writes}:
                slice_ = program.slices[site.number]
                before = slice_.offset
                slice_.offset += 64 if before + slice_.size + 64 <= temp.size else -64
                with pytest.raises(RewriteError):
                    verify(original, framing.write(executable))
                slice_.offset = before
                kinds.add(step.kind)
        verify(original, framing.write(executable))
    assert kinds >= ON_EVERY_JAXLIB


def sites(message):
    """Every slice that a message of a thunk may have, made on the spot."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or field.message_type is schema.ThunkSequenceProto.DESCRIPTOR:
            continue
        inner = getattr(message, field.name)
        inner = inner if hasattr(inner, "DESCRIPTOR") else inner.add()
        if isinstance(inner, schema.SliceProto):
            yield inner
        elif field.containing_oneof is None:
            yield from sites(inner)


def kinds_of_thunk():
    for field in schema.ThunkProto.DESCRIPTOR.oneofs_by_name["impl"].fields:
        inner = field.message_type.oneofs_by_name.get("impl")
        options = [f for f in inner.fields if f.message_type] if inner else []
        yield from ((field.name, option.name) for option in options)
        if not options:
            yield field.name, None


@pytest.mark.parametrize(("kind", "option"), list(kinds_of_thunk()))
def test_one_slice_moved_is_found_in_every_kind_of_thunk(kind, option):
    def sequence():
        """All is written, the thunk runs, all is read."""
        made = schema.ThunkSequenceProto()
        first, thunk, last = made.thunks.add(), made.thunks.add(), made.thunks.add()
        for kernel in (first.kernel_thunk, last.kernel_thunk):
            kernel.SetInParent()
        message = getattr(thunk, kind)
        message.SetInParent()
        for field in message.DESCRIPTOR.fields:
            if field.message_type is schema.ThunkSequenceProto.DESCRIPTOR and field.name != "branch_sequences":
                getattr(message, field.name).SetInParent()
        slices = list(sites(getattr(message, option) if option else message))
        for number, slice_ in enumerate(slices):
            slice_.offset, slice_.size, slice_.buffer_allocation_index = 64 * number, 64, 1
            first.kernel_thunk.results_buffers.add().slice.CopyFrom(slice_)
            last.kernel_thunk.arguments_buffers.add().slice.CopyFrom(slice_)
        return made, slices

    old, slices = sequence()
    program = thunks.program(old, 1)
    assert len(program.slices) == 3 * len(slices)
    assert kind == "call_thunk" or slices
    size = 64 * (len(slices) + 1)

    def moved_to(offsets, changed=None):
        new, slices = sequence()
        for thunk in (new.thunks[0].kernel_thunk.results_buffers, new.thunks[2].kernel_thunk.arguments_buffers):
            for shaped, offset in zip(thunk, offsets, strict=True):
                shaped.slice.offset = offset
        for slice_, offset in zip(slices, offsets, strict=True):
            slice_.offset = offset
        if changed is not None:
            slices[changed].offset = 64 * len(slices)
        side_by_side.check(old, new, 1, size)

    upside_down = [64 * number for number in reversed(range(len(slices)))]
    moved_to(upside_down)
    for number in range(len(slices)):
        with pytest.raises(RewriteError, match=r"otherwise|another value"):
            moved_to(upside_down, number)


def test_everything_in_one_place_is_found():
    found = 0
    for name in PROGRAMS:
        executable = framing.read(serialized(name))
        blocks = layout(thunks.program(executable.thunks, executable.temp().index)).blocks
        if live_bytes(blocks) >= max(block.size for block in blocks) + 64:
            found += 1
            with pytest.raises(RewriteError):
                repack(serialized(name), lambda blocks: [0] * len(blocks), at_most=math.inf)
    assert found >= len(PROGRAMS) // 2


def change_size(executable):
    executable.temp().size -= 64


def change_argument(executable):
    executable.assignment.buffer_allocations[0].size += 64


def change_kernel(executable):
    executable.thunks.thunks[0].kernel_thunk.kernel_name += b"x"


def change_object_code(executable):
    executable.result.object_files[0] += b"x"


def change_options(executable):
    executable.envelope.pjrt_client_name += b"x"


def change_order(executable):
    executable.thunks.thunks.reverse()


def drop_thunk(executable):
    del executable.thunks.thunks[-1]


def change_value(executable):
    executable.temp().assigned[0].offset = executable.temp().size


def change_alignment(executable):
    program = thunks.program(executable.thunks, executable.temp().index)
    for slice_ in program.slices:
        slice_.offset += 4
    executable.temp().size += 4


@pytest.mark.parametrize(
    "change",
    [
        change_size, change_argument, change_kernel, change_object_code, change_options, change_order, drop_thunk,
        change_value, change_alignment,
    ],
)  # fmt: skip
def test_any_other_change_is_found(change):
    original = serialized("nested_loops")
    executable = framing.read(original)
    change(executable)
    with pytest.raises(RewriteError):
        verify(original, framing.write(executable))
