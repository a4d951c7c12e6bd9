"""Rewritten executables through the whole of JAX: same bits, donation, sharding, dispatch; and every way to fail."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import planner_doubles as doubles
import pytest
from jax.experimental import serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from small_executables import PROGRAMS, argument, disjoint, serialized, upside_down
from small_programs import assert_same_bits

import xla_stalloc as stalloc
from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject import hook
from xla_stalloc.inject.executable import framing, lever, problem, rewrite, thunks
from xla_stalloc.inject.executable.errors import NotRewritableError
from xla_stalloc.inject.executable.repack import repack


@pytest.fixture(autouse=True)
def _no_other_lever():
    with hook.using(doubles.content):
        yield


@pytest.fixture
def always(monkeypatch):
    """Puts the offsets of a packer into every executable, better or not."""

    def use(packer):
        monkeypatch.setattr(lever, "repack", lambda data: repack(data, packer, at_most=math.inf))

    return use


@pytest.mark.parametrize("packer", [disjoint, upside_down])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "random"])
def test_any_placement_gives_the_same_bits(name, packer, always):
    expected = jax.jit(PROGRAMS[name])(argument())
    always(packer)
    compiled = stalloc.jit(PROGRAMS[name]).lower(argument()).compile()
    assert compiled.stalloc.levers == ("spatial",), compiled.stalloc.reason
    for _ in range(3):
        assert_same_bits(compiled(argument()), expected)


def test_what_runs_says_itself_how_large_it_is(always):
    always(disjoint)
    compiled = stalloc.jit(PROGRAMS["scan"]).lower(argument()).compile()
    record = compiled.stalloc
    assert compiled.memory_analysis().temp_size_in_bytes == record.temp_bytes > record.stock_temp_bytes
    assert record.plan_seconds > 0.25  # the planner's, and that of the lever


def step(state, batch):
    weights, momentum = state
    loss, gradient = jax.value_and_grad(lambda w: jnp.tanh(jnp.sin(batch @ w) @ w.T).var())(weights)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return (weights - 0.1 * momentum, momentum), loss


@pytest.mark.parametrize("packer", [disjoint, upside_down])
@pytest.mark.parametrize("sharded", [False, True])
def test_donated_state_over_several_steps(packer, sharded, always):
    always(packer)
    where = [None, None]
    if sharded:
        mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
        where = [NamedSharding(mesh, PartitionSpec("model")), NamedSharding(mesh, PartitionSpec("data"))]

    def steps(jit):
        function = jit(step, donate_argnums=0)
        state = jax.device_put((argument(), jnp.zeros((64, 64))), where[0])
        losses = []
        for i in range(4):
            before = state
            state, loss = function(state, jax.device_put(argument() * (1 + i), where[1]))
            losses.append(loss)
            assert all(x.is_deleted() for x in jax.tree.leaves(before))
        return state, losses

    expected = steps(jax.jit)
    recorded = len(stalloc.records())
    assert_same_bits(steps(stalloc.jit), expected)
    assert any(r.module == "jit_step" and "spatial" in r.levers for r in stalloc.records()[recorded:])


def test_enable_reaches_plain_jax(always):
    expected = jax.jit(PROGRAMS["loop"])(argument())
    always(upside_down)
    stalloc.enable(mode="full")
    assert_same_bits(jax.jit(PROGRAMS["loop"])(argument()), expected)
    assert stalloc.records()[-1].levers == ("spatial",)
    assert_same_bits(jax.jit(PROGRAMS["loop"]).lower(argument()).compile()(argument()), expected)


def test_schedule_leaves_offsets_alone(always):
    always(upside_down)
    assert stalloc.jit(PROGRAMS["loop"], mode="schedule").lower(argument()).compile().stalloc.levers == ()


def test_two_levers_add_up(always):
    always(upside_down)
    expected = jax.jit(PROGRAMS["branches"])(argument())
    with hook.using(doubles.reordering()):
        compiled = stalloc.jit(PROGRAMS["branches"]).lower(argument()).compile()
    assert compiled.stalloc.levers == ("temporal", "spatial")
    assert_same_bits(compiled(argument()), expected)


def test_a_callback_into_python_is_left_alone(always):
    always(upside_down)

    def calls_back(x):
        y = jnp.sort(jnp.sin(x @ x))
        return jax.pure_callback(np.cos, jax.ShapeDtypeStruct(y.shape, y.dtype), y) @ x @ jnp.sort(x)

    compiled = stalloc.jit(calls_back).lower(argument()).compile()
    assert "spatial: a program that calls back into Python" in compiled.stalloc.reason
    assert_same_bits(compiled(argument()), jax.jit(calls_back)(argument()))


def remains_stock(reason):
    expected = jax.jit(PROGRAMS["scan"])(argument())
    compiled = stalloc.jit(PROGRAMS["scan"]).lower(argument()).compile()
    record = compiled.stalloc
    assert reason in record.reason and record.reason.count("spatial:") == 1
    assert record.levers == () and record.temp_bytes == record.stock_temp_bytes
    assert compiled.memory_analysis().temp_size_in_bytes == record.stock_temp_bytes
    assert_same_bits(compiled(argument()), expected)


def test_a_wrong_placement_never_runs(always):
    always(lambda blocks: [0] * len(blocks))
    remains_stock("RewriteError")


def test_nothing_is_loaded_that_is_not_smaller(monkeypatch):
    monkeypatch.setattr(lever, "repack", lambda data: repack(data, disjoint))
    with pytest.raises(NotRewritableError) as refused:
        repack(serialized("scan"), disjoint)
    remains_stock(f"spatial: {refused.value}")


def test_a_failing_packer_is_a_reason(always):
    def fails(blocks):
        raise RuntimeError("on purpose")

    always(fails)
    remains_stock("RuntimeError: on purpose")


@pytest.mark.parametrize("name", ["scan", "sort", "all_reduce"])
def test_what_was_rewritten_can_be_serialized_and_loaded_again(name, always):
    expected = jax.jit(PROGRAMS[name])(argument())
    always(disjoint)
    compiled = stalloc.jit(PROGRAMS[name]).lower(argument()).compile()
    for _ in range(2):
        assert_same_bits(compiled(argument()), expected)
        again = serialize_executable.deserialize_and_load(
            *serialize_executable.serialize(compiled),
            execution_devices=jax.devices()[: 8 if name == "all_reduce" else 1],
        )
        assert_same_bits(again(argument()), expected)
        assert again.memory_analysis().temp_size_in_bytes == compiled.stalloc.temp_bytes


def test_what_has_no_object_code_is_refused():
    compiled = jax.jit(PROGRAMS["scan"]).lower(argument()).compile()
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=jax.devices()[:1]
    )
    with pytest.raises(NotRewritableError, match="no object code"):
        repack(again.runtime_executable().serialize())


def test_a_new_field_is_a_reason(monkeypatch):
    def with_new_field(data):
        executable = framing.read(data)
        sequence = executable.thunks.SerializeToString() + b"\xfa\x07\x02hi"
        executable.result.thunk_sequence = sequence
        executable.result.buffer_assignment = executable.assignment.SerializeToString()
        executable.envelope.serialized_executable = executable.result.SerializeToString()
        return repack(executable.metadata + executable.envelope.SerializeToString())

    monkeypatch.setattr(lever, "repack", with_new_field)
    remains_stock("spatial: the thunk sequence has fields that are not known here")


def test_a_runtime_that_refuses_to_load_is_a_reason(always, monkeypatch):
    always(upside_down)
    honest = lever.repack

    def truncated(data):
        repacked = honest(data)
        return repacked._replace(data=repacked.data[: len(repacked.data) // 2])

    monkeypatch.setattr(lever, "repack", truncated)
    remains_stock("Error")


def test_a_loaded_executable_of_another_size_does_not_run(always, monkeypatch):
    always(upside_down)
    honest = lever.repack
    monkeypatch.setattr(lever, "repack", lambda data: honest(data)._replace(temp_bytes=7))
    remains_stock("not 7 bytes of temp")


def test_values_that_no_thunk_touches_still_fit():
    executable = framing.read(serialized("scan"))
    temp = executable.temp()
    temp.assigned.add(logical_buffer_id=999, offset=temp.size, size=temp.size * 2)
    program = rewrite_program(executable)
    rewrite.move(executable, *program, disjoint(program[1].blocks))
    assert temp.size == max(value.size for value in temp.assigned)
    assert all(0 <= value.offset <= temp.size - value.size for value in temp.assigned)


def rewrite_program(executable):
    program = thunks.program(executable.thunks, executable.temp().index)
    return program, problem.layout(program)


def test_empty_slices_stay_within_bounds():
    sequence = schema.ThunkSequenceProto()
    slice_ = sequence.thunks.add().copy_thunk.src_buffer_shape.slice
    slice_.offset, slice_.buffer_allocation_index = 640, 1
    executable = framing.Executable(
        b"", None, None, sequence, schema.AllocationsProto(buffer_allocations=[schema.BufferAllocationProto(index=1)])
    )
    program = rewrite_program(executable)
    rewrite.move(executable, *program, [])
    assert slice_.offset == executable.temp().size == 0


def test_a_hole_that_xla_leaves_is_closed():
    def prefix_products(x):
        return jax.lax.associative_scan(jnp.matmul, jnp.stack([x, x + 1, x + 2, x + 3]))

    expected = jax.jit(prefix_products).lower(argument()).compile()
    compiled = stalloc.jit(prefix_products).lower(argument()).compile()
    record = compiled.stalloc
    assert record.levers == ("spatial",), record.reason
    assert record.stock_temp_bytes == expected.memory_analysis().temp_size_in_bytes
    assert record.temp_bytes == record.peak_live_bytes < 0.9 * record.stock_temp_bytes
    assert compiled.memory_analysis().temp_size_in_bytes == record.temp_bytes
    assert_same_bits(compiled(argument()), expected(argument()))
