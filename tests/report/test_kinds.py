"""What the buffers of a training step hold, in which phase and layer, whatever the arguments are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from xla_stalloc import hlo
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import Buffer, Lifetimes, of
from xla_stalloc.report.kinds import Content, Kinds
from xla_stalloc.report.layers import in_argument, in_scope
from xla_stalloc.report.phases import Phase, marked

S, f32 = jax.ShapeDtypeStruct, jnp.float32
LAYERS, WIDTH, ROWS, WORDS = 3, 48, 40, 320


def lifetimes_of(function: Any, *arguments: Any) -> Lifetimes:
    return of(without_barriers(hlo.open(function.lower(*arguments).compile())))


def arguments_of(lifetimes: Lifetimes) -> dict[str, Content]:
    known = Kinds(lifetimes)
    parameters = {parameter.id for parameter in lifetimes.module.entry.parameters}
    return {v.instruction.op_name: known.kind(v) for v in lifetimes.values if v.instruction.id in parameters}


def holding(lifetimes: Lifetimes, content: Content) -> list[Buffer]:
    known = Kinds(lifetimes)
    return [buffer for buffer in lifetimes.buffers if known.of_buffer(buffer) is content]


def shapes(buffers: Iterable[Buffer]) -> set[tuple[int, ...]]:
    return {buffer.values[0].shape.dimensions for buffer in buffers}


def training_step(a: Any, b: Any, c: Any) -> Any:
    """Momentum, with names that say nothing: weights, the optimizer's state, a batch."""

    def loss(a: Any) -> Any:
        x = a["head"][c]
        for number, w in enumerate(a["layers"]):
            with jax.named_scope(f"block_{number}"):
                x = jnp.tanh(x @ w)
        logits = x @ a["head"].T
        return (jax.nn.logsumexp(logits, -1) - logits[:, 0]).mean()

    value, g = jax.value_and_grad(loss)(a)
    b = jax.tree.map(lambda b, g: 0.9 * b + g, b, g)
    return jax.tree.map(lambda a, b: a - 0.1 * b, a, b), b, value


@pytest.fixture(scope="module")
def step() -> Lifetimes:
    weights = {"layers": [S((WIDTH, WIDTH), f32)] * LAYERS, "head": S((WORDS, WIDTH), f32)}
    return lifetimes_of(jax.jit(training_step, donate_argnums=(0, 1)), weights, weights, S((ROWS,), jnp.int32))


def test_arguments_are_told_by_what_reads_them(step: Lifetimes) -> None:
    found = arguments_of(step)
    assert {kind for name, kind in found.items() if name.startswith("a[")} == {Content.PARAMETER}
    assert {kind for name, kind in found.items() if name.startswith("b[")} == {Content.OPTIMIZER_STATE}
    assert found["c"] is Content.INPUT
    assert len(found) == 2 * (LAYERS + 1) + 1


def test_residuals_wait_from_the_forward_to_the_backward_pass(step: Lifetimes) -> None:
    known = Kinds(step)
    residuals = [b for b in holding(step, Content.RESIDUAL) if b.bytes == ROWS * WIDTH * 4]
    assert {known.layer(b.values[0].instruction) for b in residuals} >= {f"block_{n}" for n in range(LAYERS - 1)}
    assert {known.phase(b.values[0].instruction) for b in residuals} == {Phase.FORWARD}


def test_gradients_and_logits_are_told_apart(step: Lifetimes) -> None:
    assert shapes(holding(step, Content.LOGITS)) == {(ROWS, WORDS)}
    assert shapes(holding(step, Content.GRADIENT)) & {(WIDTH, WIDTH), (WORDS, WIDTH), (WIDTH, WORDS)}
    known = Kinds(step)
    phases = {known.phase(b.values[0].instruction) for b in holding(step, Content.GRADIENT)}
    assert phases == {Phase.BACKWARD}


def test_what_overwrites_a_donated_argument_is_what_the_argument_is(step: Lifetimes) -> None:
    known = Kinds(step)
    updated = [b for b in step.buffers if len(b.values) > 1 and b.values[0].instruction.opcode == "parameter"]
    assert len(updated) == 2 * (LAYERS + 1)
    for buffer in updated:
        assert known.of_buffer(buffer) in (Content.PARAMETER, Content.OPTIMIZER_STATE)
        assert known.phase(buffer.values[-1].instruction) is not Phase.FORWARD


def test_every_instruction_has_a_phase_and_forward_comes_first(step: Lifetimes) -> None:
    known = Kinds(step)
    for instruction in step.module.entry.instructions:
        if marked(instruction.op_name) is Phase.BACKWARD:
            assert known.phase(instruction) is Phase.BACKWARD
        for user in instruction.users:
            if known.phase(user) is Phase.FORWARD and not marked(instruction.op_name):
                assert known.phase(instruction) is Phase.FORWARD


def test_a_gradient_without_an_update() -> None:
    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = jnp.sin(x @ w)
        return (x**2).sum()

    lifetimes = lifetimes_of(jax.jit(jax.grad(loss)), [S((24, 24), f32)] * 2, S((10, 24), f32))
    assert set(arguments_of(lifetimes).values()) == {Content.PARAMETER, Content.INPUT}
    assert arguments_of(lifetimes)["x"] is Content.INPUT
    assert shapes(b for b in holding(lifetimes, Content.GRADIENT) if len(b.values[0].shape.dimensions) == 2) >= {
        (24, 24)
    }


def test_a_scan_keeps_its_residuals_in_a_stack() -> None:
    def loss(ws: Any, x: Any) -> Any:
        return (jax.lax.scan(lambda x, w: (jnp.sin(x @ w), None), x, ws)[0] ** 2).sum()

    lifetimes = lifetimes_of(jax.jit(jax.grad(loss)), S((6, 24, 24), f32), S((10, 24), f32))
    assert (6, 10, 24) in shapes(holding(lifetimes, Content.RESIDUAL))


def test_a_program_without_a_gradient_is_all_forward() -> None:
    lifetimes = lifetimes_of(
        jax.jit(lambda params, x: jnp.sort(x @ params["w"])), {"w": S((8, 8), f32)}, S((4, 8), f32)
    )
    known = Kinds(lifetimes)
    assert {known.phase(i) for i in lifetimes.module.entry.instructions} == {Phase.FORWARD}
    assert arguments_of(lifetimes) == {"params['w']": Content.PARAMETER, "x": Content.INPUT}


def test_collectives_and_copies() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY %e (x: f32[8]) -> (f32[16], f32[8]) {
  %x = f32[8]{0} parameter(0), metadata={op_name="x"}
  %g = f32[16]{0} all-gather(%x), dimensions={0}, replica_groups={{0,1}}
  %n = f32[16]{0} negate(%g)
  %c = f32[8]{0} copy(%x)
  %m = f32[8]{0} negate(%c)
  ROOT %t = (f32[16]{0}, f32[8]{0}) tuple(%n, %m)
}
"""
    lifetimes = of(hlo.open(text))
    known = Kinds(lifetimes)
    found = {value.instruction.name: known.kind(value) for value in lifetimes.values}
    assert found == {
        "x": Content.INPUT,
        "g": Content.COLLECTIVE,
        "n": Content.OUTPUT,
        "c": Content.COPY,
        "m": Content.OUTPUT,
        "t": Content.OUTPUT,
    }


@pytest.mark.parametrize(
    ("op_name", "layer"),
    [
        ("jit(step)/jvp(GPT)/block_2/up/dot_general", "block_2"),
        ("jit(step)/transpose(jvp(layers_11))/Dense_0/transpose", "layers_11"),
        ("jit(step)/jvp()/dot_general", ""),
        ("jit(step)/jit(tree_bias_correction)/pow", ""),
        ("", ""),
    ],
)
def test_layer_in_a_scope(op_name: str, layer: str) -> None:
    assert in_scope(op_name) == layer


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("st['p']['layers'][3]['wq']", "layers[3]"),
        ("state.opt_state[0].mu['params']['block_0']['up']['kernel']", "block_0"),
        ("state.params['params']['embed']['embedding']", "embed"),
        ("st['p']['layers']['wq']", "layers"),
        ("batch[0]", ""),
        ("x", ""),
    ],
)
def test_layer_in_an_argument(name: str, layer: str) -> None:
    assert in_argument(name) == layer
