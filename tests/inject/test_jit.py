"""`stalloc.jit` is a drop-in for ``jax.jit``: each test says the same of both, or compares them."""

from __future__ import annotations

import functools
import inspect
import pickle
import time

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import planner_doubles as doubles
import pytest
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout
from jax.sharding import NamedSharding, PartitionSpec
from small_programs import arguments, assert_same_bits, branches, chain, stock_temp_bytes

import xla_stalloc as stalloc
from xla_stalloc.inject import hook


@pytest.fixture(autouse=True)
def planner():
    counting = doubles.Counting(doubles.reordering())
    with hook.using(counting):
        yield counting


def test_same_bits_for_pytrees_and_keywords():
    def step(state, batch, *, scale):
        loss, gradient = chain(batch["x"], state["w"])
        return {"w": state["w"] - scale * gradient}, (loss, {"none": None, "n": batch["x"].sum()})

    x, w = arguments()
    planned, stock = stalloc.jit(step), jax.jit(step)
    for _ in range(3):
        assert_same_bits(planned({"w": w}, {"x": x}, scale=0.1), stock({"w": w}, {"x": x}, scale=0.1))


def test_compiles_and_plans_once_per_shape(planner):
    planned = stalloc.jit(branches)
    x, w = arguments()
    for _ in range(3):
        planned(x, w)
    assert len(planner.asked) == 1 and planned._cache_size() == 1
    planned(x[:128], w)
    assert len(planner.asked) == 2 and planned._cache_size() == 2
    planned.clear_cache()
    planned(x, w)
    assert len(planner.asked) == 3


@pytest.mark.parametrize("planned_first", [True, False])
def test_shares_no_cache_with_plain_jit(planned_first):
    def fresh(x, w):
        return branches(x, w)

    def stock():
        jax.jit(fresh)(*arguments())
        return jax.jit(fresh).lower(*arguments()).compile().memory_analysis().temp_size_in_bytes

    def planned():
        stalloc.jit(fresh)(*arguments())
        return stalloc.jit(fresh).lower(*arguments()).compile().memory_analysis().temp_size_in_bytes

    first, second = (planned, stock) if planned_first else (stock, planned)
    one, two = first(), second()
    small, large = (one, two) if planned_first else (two, one)
    assert small < large / 2


def test_static_arguments(planner):
    def fun(x, w, times, flip=False):
        out = branches(x, w) * times
        return -out if flip else out

    options = {"static_argnums": 2, "static_argnames": ("flip",)}
    planned, stock = stalloc.jit(fun, **options), jax.jit(fun, **options)
    for times, flip in ((2, False), (2, True), (3, True), (3, True)):
        assert_same_bits(planned(*arguments(), times, flip=flip), stock(*arguments(), times, flip=flip))
    assert len(planner.asked) == 3


def test_donated_arguments():
    def step(w, x):
        return w - 0.1 * chain(x, w)[1]

    x, w = arguments()
    expected = jax.jit(step)(w, x)
    for options in ({"donate_argnums": 0}, {"donate_argnames": "w"}):
        donated = jnp.array(w)
        result = stalloc.jit(step, **options)(donated, x)
        assert donated.is_deleted()
        assert_same_bits(result, expected)


def test_decorators_and_identity():
    @stalloc.jit
    def plain(x):
        """Doc."""
        return x + 1

    @stalloc.jit(mode="schedule")
    def with_arguments(x):
        return x + 1

    assert plain(1) == with_arguments(1) == 2
    assert (plain.__name__, plain.__doc__) == ("plain", "Doc.")
    assert inspect.signature(plain) == inspect.signature(plain.__wrapped__)
    assert isinstance(plain, jax.stages.Wrapped)
    assert stalloc.jit(functools.partial(lambda a, b: a - b, 5))(2) == 3
    with pytest.raises(TypeError):
        stalloc.jit(lambda x: x, no_such_option=1)


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(stalloc.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.scale

    assert Model(3)(2) == 6 and Model(4)(2) == 8


def test_pickles():
    again = pickle.loads(pickle.dumps(stalloc.jit(branches, donate_argnums=())))
    assert_same_bits(again(*arguments()), jax.jit(branches)(*arguments()))


def test_transformations():
    x, w = arguments()
    planned, stock = stalloc.jit(branches), jax.jit(branches)
    assert_same_bits(jax.grad(planned)(x, w), jax.grad(stock)(x, w))
    xs = jnp.stack([x, x + 1])
    assert_same_bits(jax.vmap(planned, (0, None))(xs, w), jax.vmap(stock, (0, None))(xs, w))
    assert_same_bits(jax.jit(jax.grad(planned))(x, w), jax.jit(jax.grad(stock))(x, w))
    assert_same_bits(jax.jvp(planned, (x, w), (x, w)), jax.jvp(stock, (x, w), (x, w)))
    assert jax.eval_shape(planned, x, w) == planned.eval_shape(x, w) == jax.ShapeDtypeStruct((), jnp.float32)


def test_inside_a_plain_jit_it_is_part_of_a_stock_program(planner):
    outer = jax.jit(lambda x, w: stalloc.jit(branches)(x, w) + 1)
    outer(*arguments())
    assert planner.asked == []


def test_what_runs_while_tracing_is_not_planned(planner):
    inner = jax.jit(branches)

    def fun(x, w):
        with jax.ensure_compile_time_eval():
            constant = inner(*arguments(7))
        return branches(x, w) + constant

    stalloc.jit(fun)(*arguments())
    assert len(planner.asked) == 1
    assert inner.lower(*arguments()).compile().memory_analysis().temp_size_in_bytes == stock_temp_bytes(
        branches, *arguments()
    )


def test_stages_are_those_of_jax():
    planned, stock = stalloc.jit(branches), jax.jit(branches)
    traced, lowered = planned.trace(*arguments()), planned.lower(*arguments())
    assert isinstance(traced, jax.stages.Traced) and isinstance(lowered, jax.stages.Lowered)
    assert str(traced.jaxpr) == str(stock.trace(*arguments()).jaxpr)
    assert lowered.as_text() == stock.lower(*arguments()).as_text()
    assert "xla_stalloc/inject" not in lowered.as_text(debug_info=True)
    compiled, plain = lowered.compile(), stock.lower(*arguments()).compile()
    assert isinstance(compiled, jax.stages.Compiled)
    assert isinstance(traced.lower().compile().stalloc, stalloc.PlanRecord)
    assert compiled.memory_analysis().argument_size_in_bytes == plain.memory_analysis().argument_size_in_bytes
    assert compiled.cost_analysis().keys() == plain.cost_analysis().keys()
    assert compiled.input_shardings == plain.input_shardings
    assert compiled.output_shardings == plain.output_shardings
    assert compiled.in_tree == plain.in_tree and compiled.out_tree == plain.out_tree
    assert compiled.runtime_executable() is not None and "jit_branches" in compiled.as_text()
    assert_same_bits(compiled(*arguments()), plain(*arguments()))


def test_every_way_to_the_executable_leads_to_its_record(planner):
    planned = stalloc.jit(branches, mode="schedule")
    planned(*arguments())
    record = stalloc.records()[-1]
    assert planned.lower(*arguments()).compile().stalloc is record
    assert planned.lower(*arguments()).compile().stalloc is record
    assert len(planner.asked) == 1 and record.levers[:1] == ("temporal",)


def test_compiler_options():
    planned = stalloc.jit(branches, compiler_options={"xla_embed_ir_in_executable": True})
    assert_same_bits(planned(*arguments()), jax.jit(branches)(*arguments()))
    compiled = stalloc.jit(branches).lower(*arguments()).compile({"xla_embed_ir_in_executable": True})
    assert compiled.stalloc.levers[:1] == ("temporal",)
    with pytest.raises(Exception, match="no_such_option"):
        stalloc.jit(branches).lower(*arguments()).compile({"no_such_option": True})


def test_sharded_over_eight_devices():
    assert len(jax.devices()) == 8
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    batch = NamedSharding(mesh, PartitionSpec("data"))
    weights = NamedSharding(mesh, PartitionSpec(None, None, "model"))
    x, w = arguments()
    options = {
        "in_shardings": (batch, weights),
        "out_shardings": (NamedSharding(mesh, PartitionSpec()), weights),
        "donate_argnums": 1,
    }
    planned, stock = stalloc.jit(chain, **options), jax.jit(chain, **options)
    compiled = planned.lower(x, w).compile()
    assert compiled.stalloc.levers[:1] == ("temporal",)
    assert compiled.output_shardings[1] == weights

    def run(fun):
        state = jax.device_put(w, weights)
        for _ in range(3):
            loss, state = fun(jax.device_put(x, batch), state)
        return loss, state

    assert_same_bits(run(planned), run(stock))


def test_custom_layouts():
    x, w = arguments()
    layout = Format(Layout((1, 0)), x.sharding)
    options = {"in_shardings": (layout, None), "out_shardings": (None, layout)}

    def fun(x, w):
        return branches(x, w), x * 2

    compiled = stalloc.jit(fun, **options).lower(x, w).compile()
    stock = jax.jit(fun, **options).lower(x, w).compile()
    assert compiled.input_formats == stock.input_formats and compiled.output_formats == stock.output_formats
    x = jax.device_put(x, layout)
    assert_same_bits(compiled(x, w), stock(x, w))


@pytest.mark.parametrize("stock_temp_bytes", [1, doubles.HUGE])
def test_host_callbacks(stock_temp_bytes):
    """With the low figure stock is compiled as well; both executables keep the callback alive."""
    seen = []

    def fun(x, w):
        jax.debug.callback(lambda v: seen.append(float(v)), branches(x, w))
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(lambda v: np.float32(v) + 1, shape, branches(x, w))

    with hook.using(doubles.reordering(stock_temp_bytes=stock_temp_bytes)):
        planned = stalloc.jit(fun)
        result = planned(*arguments())
    jax.effects_barrier()
    assert seen == [float(jax.jit(branches)(*arguments()))]
    assert_same_bits(result, jax.jit(fun)(*arguments()))


def test_serialized_executables_load_again():
    compiled = stalloc.jit(branches).lower(*arguments()).compile()
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(compiled), execution_devices=jax.devices()[:1]
    )
    assert_same_bits(again(*arguments()), jax.jit(branches)(*arguments()))
    assert again.memory_analysis().temp_size_in_bytes == compiled.memory_analysis().temp_size_in_bytes


def test_export():
    exported = jax.export.export(stalloc.jit(branches))(*arguments())
    assert_same_bits(exported.call(*arguments()), jax.jit(branches)(*arguments()))


def test_a_call_costs_microseconds_more():
    def add(x):
        return x + 1

    def seconds(fun, calls=3000):
        x = jnp.ones(3)
        fun(x)
        best = float("inf")
        for _ in range(7):
            started = time.perf_counter()
            for _ in range(calls):
                fun(x)
            best = min(best, (time.perf_counter() - started) / calls)
        return best

    assert seconds(stalloc.jit(add)) - seconds(jax.jit(add)) < 10e-6


def test_the_compiled_module_carries_its_record():
    compiled = stalloc.jit(branches).lower(*arguments()).compile()
    from jaxlib import _hlo

    from xla_stalloc.inject import marker

    serialized = hook.hlo_of(compiled.runtime_executable())
    again = _hlo.hlo_module_from_text(compiled.as_text()).as_serialized_hlo_module_proto()
    for source in (serialized, again):
        embedded = marker.record_of(source)
        assert embedded.module == "jit_branches" and embedded.plan_seconds == 0
    assert marker.record_of(hook.hlo_of(jax.jit(branches).lower(*arguments()).compile().runtime_executable())) is None
