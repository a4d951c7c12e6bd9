"""Whatever is wrong with a source, the answer is a HloError that names it, or a module that holds together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc import hlo
from xla_stalloc.hlo.schema import hlo_pb2


@pytest.fixture(scope="module")
def originals(serialized: bytes, compiled: jax.stages.Compiled) -> dict[str, bytes]:
    """The same small program in several formats, for damaging."""
    small = jax.jit(lambda x: (x @ x).sum()).lower(jax.ShapeDtypeStruct((8, 8), "float32")).compile()
    executable = small.runtime_executable()
    module = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    proto = hlo_pb2.HloProto(hlo_module=hlo_pb2.HloModuleProto.FromString(module))
    return {
        "step": serialized,
        "module": module,
        "proto": proto.SerializeToString(),
        "executable": bytes(executable.serialize()),
    }


def check_holds_together(module: hlo.Module) -> None:
    """Use everything that a damaged message could break."""
    module.fingerprint()
    assert module.entry in module.computations
    for computation in module.computations:
        assert sorted(i.id for i in computation.sequence) == sorted(i.id for i in computation.instructions)
        assert computation.root.computation is computation
        seen: set[int] = set()
        for instruction in computation.sequence:
            assert seen.issuperset(operand.id for operand in instruction.operands)
            seen.add(instruction.id)
            assert instruction.shape.byte_size >= 0
            assert str(instruction.shape)
            assert all(location.line is not None for location in instruction.source_stack)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_damaged_bytes(originals: dict[str, bytes], data: st.DataObject) -> None:
    damaged = bytearray(originals[data.draw(st.sampled_from(sorted(originals)))])
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(damaged) - 1))
        damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged))) :]
    try:
        module = hlo.open(bytes(damaged))
    except hlo.HloError as error:
        assert str(error)
    else:
        check_holds_together(module)


@settings(deadline=None, max_examples=50)
@given(junk=st.binary(max_size=200))
def test_junk(junk: bytes) -> None:
    with pytest.raises(hlo.HloError):
        hlo.open(junk)
    with pytest.raises(hlo.HloError):
        hlo.Module.from_bytes(junk, "junk")


Change = Callable[[hlo_pb2.HloModuleProto], object]


def entry_of(proto: hlo_pb2.HloModuleProto) -> hlo_pb2.HloComputationProto:
    return next(c for c in proto.computations if c.id == proto.entry_computation_id)


def swap_sequence(proto: hlo_pb2.HloModuleProto) -> None:
    ids = proto.schedule.sequences[proto.entry_computation_id].instruction_ids
    ids[:] = list(ids)[::-1]


def first(proto: hlo_pb2.HloModuleProto, opcode: str) -> hlo_pb2.HloInstructionProto:
    return next(i for c in proto.computations for i in c.instructions if i.opcode == opcode)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda p: entry_of(p).instructions[-1].operand_ids.append(999), "refers to id 999"),
        (lambda p: entry_of(p).instructions[0].operand_ids.append(entry_of(p).root_id), "does not come before it"),
        (lambda p: entry_of(p).instructions[0].control_predecessor_ids.append(-1), "refers to id -1"),
        (lambda p: first(p, "fusion").called_computation_ids.append(12345), "refers to id 12345"),
        (lambda p: first(p, "while").called_computation_ids.pop(), "does not fit the computations"),
        (lambda p: first(p, "conditional").called_computation_ids.pop(), "does not fit the computations"),
        (lambda p: first(p, "fusion").operand_ids.pop(), "does not fit the computations"),
        (lambda p: first(p, "get-tuple-element").__setattr__("tuple_index", 77), "takes part 77"),
        (lambda p: entry_of(p).__setattr__("root_id", 5), "no instruction with its root's id"),
        (lambda p: p.__setattr__("entry_computation_id", 99999), "no entry computation with id 99999"),
        (lambda p: entry_of(p).instructions.add().CopyFrom(entry_of(p).instructions[0]), "two instructions have id"),
        (lambda p: p.computations.add().CopyFrom(p.computations[0]), "instruction id of another computation"),
        (lambda p: first(p, "parameter").__setattr__("parameter_number", 8), "not numbered from 0"),
        (lambda p: p.schedule.sequences[p.entry_computation_id].instruction_ids.pop(), "each instruction once"),
        (lambda p: p.schedule.sequences[424242].instruction_ids.append(1), "missing computation, id 424242"),
        (swap_sequence, "which it needs"),
        (lambda p: first(p, "dot").shape.__setattr__("element_type", 99), "unknown element type 99"),
        (lambda p: first(p, "dot").shape.dimensions.append(-4), "malformed shape"),
        (lambda p: first(p, "dot").shape.layout.minor_to_major.append(0), "malformed shape"),
        (lambda p: p.input_output_alias.entries.add(parameter_number=40), "no parameter 40"),
        (lambda p: p.buffer_donor.entries.add(parameter_shape_index=[3]), "has no part"),
    ],
)
def test_incomplete_programs(serialized: bytes, change: Change, problem: str) -> None:
    proto = hlo_pb2.HloModuleProto.FromString(serialized)
    change(proto)
    with pytest.raises(hlo.HloError, match=problem) as caught:
        hlo.Module.from_bytes(proto.SerializeToString(), "damaged.pb")
    assert str(caught.value).startswith("damaged.pb: module 'jit_train_step'")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"hello, world", "expected HLO"),
        (b"HloModule broken\nENTRY main {", "not valid HLO text"),
        (b"HloModule \xff\xfe", "not valid HLO text"),
        (b"\x1f\x8b\x08\x00", "starts like gzip data"),
        (b"\xfd7zXZ\x00\x00", "starts like xz data"),
        (b"\x78\x9c\x00", "starts like zlib data"),
        (b"\x28\xb5\x2f\xfd", "starts like zstd data"),
        (b"\x80\x04\x95", "expected HLO"),
    ],
)
def test_files_that_are_no_hlo(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "program.pb"
    file.write_bytes(content)
    with pytest.raises(hlo.HloError, match=problem) as caught:
        hlo.open(file)
    assert str(caught.value).startswith(str(file))


def test_missing_things(tmp_path: Path) -> None:
    with pytest.raises(hlo.HloError, match=r"absent\.pb: cannot be read: No such file"):
        hlo.open(tmp_path / "absent.pb")
    with pytest.raises(hlo.HloError, match=r"no dump of an optimized program.*--xla_dump_to"):
        hlo.open(tmp_path)
    with pytest.raises(hlo.HloError, match="cannot be read"):
        hlo.open("a\x00b")
    with pytest.raises(hlo.HloError, match="cannot be read: File name too long"):
        hlo.open("a" * 5000)
    for foreign in (None, 7, object(), [b"x"], jax.jit(lambda x: x)):
        with pytest.raises(hlo.HloError, match="nothing that holds HLO"):
            hlo.open(foreign)
