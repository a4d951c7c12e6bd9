"""Executables come apart and together again, and what is not known is refused."""

from __future__ import annotations

import pytest
from small_executables import PROGRAMS, serialized

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable import framing, thunks
from xla_stalloc.inject.executable.errors import NotRewritableError


@pytest.mark.parametrize("name", PROGRAMS)
def test_unchanged_it_is_the_same_to_the_byte(name):
    assert framing.write(framing.read(serialized(name))) == serialized(name)


def rebuilt(change):
    """An executable with one of its layers, as bytes, changed."""
    executable = framing.read(serialized("scan"))
    layers = {
        "thunks": executable.thunks.SerializeToString(),
        "assignment": executable.assignment.SerializeToString(),
    }
    change(layers, executable)
    executable.result.thunk_sequence = layers["thunks"]
    executable.result.buffer_assignment = layers["assignment"]
    executable.envelope.serialized_executable = executable.result.SerializeToString()
    return executable.metadata + executable.envelope.SerializeToString()


NEW_FIELD = b"\xfa\x07\x02hi"  # number 127, a string


def test_rebuilt_without_a_change_it_is_the_same():
    assert rebuilt(lambda layers, executable: None) == serialized("scan")


@pytest.mark.parametrize("layer", ["thunks", "assignment"])
def test_a_new_field_is_refused(layer):
    def change(layers, executable):
        layers[layer] += NEW_FIELD

    with pytest.raises(NotRewritableError, match="has fields that are not known"):
        framing.read(rebuilt(change))


def test_a_new_field_deep_inside_is_refused():
    def change(layers, executable):
        thunk = executable.thunks.thunks[0]
        thunk.kernel_thunk.arguments_buffers.add().MergeFromString(NEW_FIELD)
        layers["thunks"] = executable.thunks.SerializeToString()

    with pytest.raises(NotRewritableError, match="thunk sequence has fields that are not known"):
        framing.read(rebuilt(change))


def test_a_new_kind_of_thunk_is_refused():
    sequence = schema.ThunkSequenceProto()
    sequence.thunks.add(kind="teleport").info.op_name = "beam.1"
    with pytest.raises(NotRewritableError, match=r"'teleport'.*beam\.1"):
        thunks.program(sequence, 0)


def test_other_object_files_are_refused():
    def change(layers, executable):
        executable.result.obj_files_kind = 1

    with pytest.raises(NotRewritableError, match="object files of kind 1"):
        framing.read(rebuilt(change))


def test_two_allocations_of_temporaries_are_refused():
    executable = framing.read(serialized("scan"))
    temp = executable.temp()
    executable.assignment.buffer_allocations.add().CopyFrom(temp)
    with pytest.raises(NotRewritableError, match="2 allocations"):
        executable.temp()


@pytest.mark.parametrize("data", [b"", b"\x80" * 9, b"\x05abc", b"\x00\xff\xff\xff", b"\x00garbage"])
def test_garbage_is_refused(data):
    with pytest.raises(NotRewritableError):
        framing.read(data)


def test_a_truncated_executable_is_refused():
    data = serialized("products")
    for length in range(0, len(data), len(data) // 97):
        with pytest.raises(NotRewritableError):
            framing.read(data[:length])
