"""Shapes against XLA's text and XLA's own buffer sizes."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

from xla_stalloc import hlo
from xla_stalloc.hlo.shape import Shape


def parameter_shape(text: str) -> Shape:
    return hlo.open(f"HloModule m\nENTRY main {{ ROOT p = {text} parameter(0) }}").entry.root.shape


# Sizes by hand: elements times bits, rounded up to bytes; a tuple is a table of 8-byte pointers.
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[]", 4),
        ("f32[8,128]{1,0}", 4096),
        ("f32[8,128]{0,1}", 4096),
        ("bf16[3,5]{1,0:T(8,128)(2,1)}", 30),
        ("pred[7]{0}", 7),
        ("c128[2]{0}", 32),
        ("f8e4m3fn[10]{0}", 10),
        ("s4[5]{0}", 5),
        ("s4[5]{0:E(4)}", 3),
        ("u2[9]{0:E(2)}", 3),
        ("f32[0,4]{1,0}", 0),
        ("f32[16]{0:S(5)}", 64),
        ("f32[<=6,2]{1,0}", 48 + 2 * 4),  # a bound of 48 bytes and the two sizes at run time
        ("token[]", 0),
        ("()", 0),
        ("(f32[2]{0}, (s32[], token[]))", 16),
    ],
)
def test_text_and_bytes(text: str, size: int) -> None:
    shape = parameter_shape(text)
    assert str(shape) == text
    assert shape.byte_size == size


def test_equality_is_type_dimensions_and_layout() -> None:
    shape = parameter_shape("f32[8,128]{1,0}")
    assert shape == parameter_shape("f32[8,128]{1,0}")
    assert hash(shape) == hash(parameter_shape("f32[8,128]{1,0}"))
    others = ("f32[8,128]{0,1}", "s32[8,128]{1,0}", "f32[128,8]{1,0}", "f32[8,128]{1,0:S(1)}", "f32[8,128]{1,0:T(8)}")
    assert shape not in [parameter_shape(text) for text in others]


def test_subshapes_are_in_preorder() -> None:
    shape = parameter_shape("(f32[2]{0}, (s32[], pred[]), ())")
    assert [index for index, _ in shape.subshapes()] == [(), (0,), (1,), (1, 0), (1, 1), (2,)]
    assert all(shape.at(index) is part for index, part in shape.subshapes())
    assert [str(part) for _, part in shape.subshapes()[1:3]] == ["f32[2]{0}", "(s32[], pred[])"]
    for index in ((3,), (0, 0), (-1,)):
        with pytest.raises(IndexError):
            shape.at(index)


def test_equal_shapes_are_one_object(compiled: jax.stages.Compiled) -> None:
    shapes = [i.shape for i in hlo.open(compiled).instructions_by_id.values()]
    assert len({id(shape) for shape in shapes}) == len(set(shapes)) < len(shapes)


def check_sizes(module: hlo.Module) -> None:
    assert module.buffer_assignment is not None
    for buffer in module.buffer_assignment.logical_buffers:
        place = buffer.defined_at
        shape = module.instruction(place.instruction_id).shape.at(tuple(place.shape_index))
        assert shape.byte_size == buffer.size, (place.instruction_id, str(shape))
    assert module.buffer_assignment.logical_buffers


def test_sizes_are_those_of_xla(compiled: jax.stages.Compiled, sharded: jax.stages.Compiled) -> None:
    check_sizes(hlo.open(bytes(compiled.runtime_executable().serialize())))
    check_sizes(hlo.open(bytes(sharded.runtime_executable().serialize())))


def test_sizes_are_those_of_xla_gpu(gpu_program: Path) -> None:
    check_sizes(hlo.open(gpu_program))
