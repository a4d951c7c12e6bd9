"""Modules against what XLA itself says about the same program."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import jax
import pytest
from jaxlib import _hlo

from xla_stalloc import hlo
from xla_stalloc.hlo.rewrite import serialize
from xla_stalloc.hlo.schema import hlo_pb2


@pytest.fixture
def module(compiled: jax.stages.Compiled) -> hlo.Module:
    return hlo.open(compiled)


def xla_text(serialized: bytes) -> str:
    """What XLA prints for a serialized module; it checks the module on the way."""
    return _hlo.HloModule.from_serialized_hlo_module_proto(serialized).to_string()


def of_opcode(module: hlo.Module, opcode: str) -> list[hlo.Instruction]:
    return [i for i in module.instructions_by_id.values() if i.opcode == opcode]


def test_round_trip_loses_nothing(serialized: bytes) -> None:
    module = hlo.Module.from_bytes(serialized, "step")
    # Through every message of our schema, and through the one that leaves computations unread.
    for again in (module.proto.SerializeToString(deterministic=True), serialize(module, {}, {})):
        # Unknown fields and maps may move inside the bytes, so XLA compares for us.
        assert len(again) == len(serialized)
        assert xla_text(again) == xla_text(serialized)
    assert serialize(hlo.Module.from_bytes(again, "again"), {}, {}) == again


def test_operands_users_and_calls(module: hlo.Module) -> None:
    users: defaultdict[int, list[hlo.Instruction]] = defaultdict(list)
    for computation in module.computations:
        for instruction in computation.instructions:
            assert module.instruction(instruction.id) is instruction
            assert instruction.computation is computation
            assert [o.id for o in instruction.operands] == list(instruction.proto.operand_ids)
            assert [c.id for c in instruction.called] == list(instruction.proto.called_computation_ids)
            for operand in dict.fromkeys(instruction.operands):
                users[operand.id].append(instruction)
        assert [p.parameter_number for p in computation.parameters] == list(range(len(computation.parameters)))
        assert computation.root in computation.instructions
    assert all(i.users == users[i.id] for i in module.instructions_by_id.values())


def test_loops_and_branches(module: hlo.Module) -> None:
    loops = of_opcode(module, "while")
    assert loops
    for loop in loops:
        body, condition = loop.called
        assert body.root.shape == body.parameters[0].shape == loop.shape == loop.operands[0].shape
        assert condition.root.shape.element_type == "pred"
        assert body.is_scheduled and condition.is_scheduled
    (conditional,) = of_opcode(module, "conditional")
    assert len(conditional.called) == 2
    fusion = of_opcode(module, "fusion")[0]
    assert fusion.fusion_kind
    assert not fusion.called[0].is_scheduled


def test_sequence_is_the_schedule(module: hlo.Module) -> None:
    for computation in module.computations:
        if computation.is_scheduled:
            ids = module.proto.schedule.sequences[computation.id].instruction_ids
            assert [i.id for i in computation.sequence] == list(ids)
        assert sorted(i.id for i in computation.sequence) == sorted(i.id for i in computation.instructions)


def test_donation(module: hlo.Module) -> None:
    # Both leaves of the donated parameters come back as the first two results.
    assert {(output, number) for output, number, _, _ in module.input_output_alias} == {((0,), 0), ((1,), 1)}
    assert all(index == () and not must for _, _, index, must in module.input_output_alias)
    assert module.buffer_donors == ()


def test_donation_without_a_place(serialized: bytes) -> None:
    proto = hlo_pb2.HloModuleProto.FromString(serialized)
    proto.buffer_donor.entries.add(parameter_number=2)
    assert hlo.Module.from_bytes(proto.SerializeToString(), "step").buffer_donors == ((2, ()),)


def test_source_locations(module: hlo.Module) -> None:
    dots = [i for i in module.instructions_by_id.values() if "dot_general" in i.op_name and i.source_file]
    assert dots
    lines = Path(__file__).with_name("conftest.py").read_text().splitlines()
    for dot in dots:
        assert Path(dot.source_file).name == "conftest.py"
        assert "@" in lines[dot.source_line - 1]
        assert dot.source_stack[0][:2] == (dot.source_file, dot.source_line)


def test_source_location_without_stack_frames() -> None:
    text = """HloModule m
ENTRY main { ROOT x = f32[] parameter(0), metadata={op_name="jit(f)/x" source_file="model.py" source_line=7} }"""
    (parameter,) = hlo.open(text).entry.instructions
    assert (parameter.op_name, parameter.source_file, parameter.source_line) == ("jit(f)/x", "model.py", 7)


def test_stack_frames_of_a_table() -> None:
    proto = hlo.open("HloModule m\nENTRY main { ROOT x = f32[] parameter(0) }").proto
    index = proto.stack_frame_index
    index.file_names.extend(["model.py", "train.py"])
    index.function_names.extend(["layer", "main"])
    index.file_locations.add(file_name_id=1, function_name_id=1, line=7)
    index.file_locations.add(file_name_id=2, function_name_id=2, line=30)
    index.stack_frames.add(file_location_id=1, parent_frame_id=2)
    index.stack_frames.add(file_location_id=2)
    proto.computations[0].instructions[0].metadata.stack_frame_id = 1
    (parameter,) = hlo.Module(proto, "table").entry.instructions
    assert parameter.source_stack == (("model.py", 7, "layer"), ("train.py", 30, "main"))
    index.stack_frames[1].parent_frame_id = 1  # a damaged table that goes round in a circle
    (parameter,) = hlo.Module(proto, "table").entry.instructions
    assert len(parameter.source_stack) == 2


def test_custom_call_attributes() -> None:
    text = """HloModule m, frontend_attributes={team="red"}
ENTRY main {
  p = f32[4]{0} parameter(0)
  q = f32[4]{0} parameter(1), control-predecessors={p}
  ROOT c = (f32[4]{0}, f32[4]{0}) custom-call(p, q), custom_call_target="update",
    custom_call_has_side_effect=true, output_to_operand_aliasing={{1}: (0, {})}
}"""
    module = hlo.open(text)
    call = module.entry.root
    assert call.custom_call_target == "update"
    assert call.has_side_effect
    assert call.output_operand_aliasing == (((1,), 0, ()),)
    assert [i.name for i in call.operands[1].control_predecessors] == ["p"]
    assert module.frontend_attributes == {"team": "red"}
    assert module.platform == ""


def latest_first(computation: hlo.Computation) -> list[int]:
    """Another valid order: of the instructions that are ready, always the one that comes last."""
    waiting = {i.id: len(i.operands) + len(i.control_predecessors) for i in computation.instructions}
    position = {i.id: step for step, i in enumerate(computation.sequence)}
    followers: defaultdict[int, list[int]] = defaultdict(list)
    for instruction in computation.instructions:
        for before in (*instruction.operands, *instruction.control_predecessors):
            followers[before.id].append(instruction.id)
    ready, order = [id for id, count in waiting.items() if not count], list[int]()
    while ready:
        chosen = max(ready, key=position.__getitem__)
        ready.remove(chosen)
        order.append(chosen)
        for follower in followers[chosen]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return order


def test_serialize_with_other_orders(module: hlo.Module) -> None:
    orders = {
        computation.id: latest_first(computation) for computation in module.computations if computation.is_scheduled
    }
    serialized = serialize(module, {}, orders)
    reordered = hlo.Module.from_bytes(serialized, "reordered")
    assert {c.id: [i.id for i in c.sequence] for c in reordered.computations if c.is_scheduled} == orders
    assert [i.id for i in reordered.entry.sequence] != [i.id for i in module.entry.sequence]
    assert reordered.fingerprint() == module.fingerprint()
    # XLA accepts it as a module with another order of the same instructions.
    assert sorted(xla_text(serialized).splitlines()) == sorted(xla_text(serialize(module, {}, {})).splitlines())


def test_serialize_rejects_what_is_no_permutation(module: hlo.Module) -> None:
    ids = [i.id for i in module.entry.sequence]
    with pytest.raises(ValueError, match="exactly once"):
        serialize(module, {}, {module.entry.id: ids[:-1]})
    with pytest.raises(ValueError, match="exactly once"):
        serialize(module, {}, {module.entry.id: [*ids[:-1], ids[0]]})
    with pytest.raises(ValueError, match="no computation with id -5"):
        serialize(module, {}, {-5: []})


_HOOKED = """
import pathlib, sys, jax
from jax.extend import xla
jax.numpy.zeros(1)  # the platform must be known before a pass can be registered for it
file = pathlib.Path(sys.argv[1])
def look(serialized):
    file.write_bytes(serialized)
stage = xla.PipelineStage.POST_SCHEDULER
xla.register_hlo_module_transformation(look, name="look", stage=stage, platforms="cpu")
compiled = jax.jit(lambda x: (x @ x).sum()).lower(jax.ShapeDtypeStruct((8, 8), "float32")).compile()
module = compiled.runtime_executable().hlo_modules()[0]
file.with_suffix(".final").write_bytes(module.as_serialized_hlo_module_proto())
"""


def test_hook_bytes(tmp_path: Path) -> None:
    """The module that XLA hands to a compiler hook is scheduled, and the same as in the executable."""
    # A process of its own: a registered transformation cannot be taken back alone.
    environment = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    subprocess.run(
        [sys.executable, "-c", _HOOKED, str(tmp_path / "hook.seen")], check=True, env=environment, timeout=120
    )
    module = hlo.Module.from_bytes((tmp_path / "hook.seen").read_bytes(), "hook", platform="cpu")
    assert module.is_scheduled
    assert module.platform == "cpu"
    assert module.fingerprint() == hlo.open(tmp_path / "hook.final").fingerprint()


@pytest.mark.parametrize(
    ("config", "told", "platform"),
    [
        ('{"operation_queue_id":"0"}', "", "cuda"),
        ('{"operation_queue_id":"0"}', "rocm", "rocm"),
        ('{"flag_configs":[]}', "wrapper", "tpu"),
        ('{"outer_dimension_partitions":["2"]}', "wrapper", "cpu"),
        ("", "wrapper", "wrapper"),
        ("", "", ""),
    ],
)
def test_platform(config: str, told: str, platform: str) -> None:
    proto = hlo.open("HloModule m\nENTRY main { ROOT x = f32[] parameter(0) }").proto
    proto.computations[0].instructions[0].backend_config = config.encode()
    assert hlo.Module(proto, "marked", platform=told).platform == platform
