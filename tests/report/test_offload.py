"""What may wait in the host's memory: idle in the schedule, with time for both transfers, and what the peak then is."""

from __future__ import annotations

import ast
import dataclasses

import jax
import jax.numpy as jnp
import optax
import pytest

from xla_stalloc import hlo
from xla_stalloc.lifetimes import of
from xla_stalloc.report.offload import OffloadReport, offload
from xla_stalloc.report.offload_code import code
from xla_stalloc.scheduling.cost import Card

CARD = Card("slow", flops=1e12, memory_bytes=1e11, link_bytes=1e10)
LAYERS, WIDTH, BATCH = 6, 256, 2048
KIB = 1 << 10


@pytest.fixture(scope="module")
def module() -> hlo.Module:
    """A step whose activations wait for the backward, and whose Adam moments wait for the end."""
    optimizer = optax.adam(1e-3)

    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def step(state, x):
        weights, moments = state
        updates, moments = optimizer.update(jax.grad(loss)(weights, x), moments)
        return optax.apply_updates(weights, updates), moments

    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)] * LAYERS
    state = weights, jax.eval_shape(optimizer.init, weights)
    x = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32)
    return hlo.open(jax.jit(step, donate_argnums=0).lower(state, x).compile())


@pytest.fixture(scope="module")
def report(module: hlo.Module) -> OffloadReport:
    return offload(module, CARD, 1e11, smallest_bytes=100 * KIB)


def test_the_peak_falls_by_no_more_than_what_is_away(report: OffloadReport) -> None:
    away = sum(candidate.bytes for candidate in report.chosen)
    assert 0 < report.peak_bytes - report.estimated_peak_bytes <= away
    assert {candidate.kind for candidate in report.chosen + report.others} == {"residual", "state"}


def test_nothing_touches_what_is_away_and_both_transfers_fit(module: hlo.Module, report: OffloadReport) -> None:
    schedule = of(module).schedule
    for candidate in report.chosen + report.others:
        assert candidate.slack_seconds >= 0
        assert candidate.transfer_seconds == pytest.approx(2 * candidate.bytes / 1e11)
        for begin, end in candidate.away:
            for instruction in schedule[begin:end]:
                if instruction.opcode == "parameter":
                    continue
                assert candidate.name != instruction.name
                assert candidate.name not in [operand.name for operand in instruction.operands], instruction.name


def test_the_estimate_counts_what_is_live_without_what_is_away(module: hlo.Module, report: OffloadReport) -> None:
    arguments = sum(parameter.shape.byte_size for parameter in module.entry.parameters)
    live = of(module).live_bytes()
    assert report.peak_bytes == arguments + max(live)

    def missing(time: int) -> int:
        return sum(c.bytes for c in report.chosen for begin, end in c.away if begin <= time < end)

    assert report.estimated_peak_bytes == arguments + max(bytes - missing(t) for t, bytes in enumerate(live))


def test_a_slow_host_link_leaves_no_time(module: hlo.Module) -> None:
    slow = offload(module, CARD, 1e6, smallest_bytes=100 * KIB)
    assert slow.chosen == slow.others == ()
    assert slow.estimated_peak_bytes == slow.peak_bytes
    assert code(slow) == ""
    with pytest.raises(ValueError, match="give a positive rate"):
        offload(module, CARD, 0)


def test_the_code_is_python_and_names_each_line_once(report: OffloadReport) -> None:
    text = code(report)
    ast.parse(text)
    assert "save_and_offload_only_these_names" in text
    sources = {candidate.source for candidate in report.chosen if candidate.kind == "residual"}
    assert all(text.count(f"# {source}:") == 1 for source in sources)
    state = dataclasses.replace(report, chosen=tuple(c for c in report.others + report.chosen if c.kind == "state"))
    ast.parse(code(state))
    assert 'with_memory_kind("pinned_host")' in code(state)


def test_on_cpu_a_policy_moves_nothing() -> None:
    """XLA:CPU ignores where residuals go, so recompiling there shows nothing; docs/offload.md has what a TPU does."""
    from jax.ad_checkpoint import checkpoint_name

    def temp_bytes(policy) -> int:
        def layers(weights, x):
            for weight in weights:
                x = checkpoint_name(jnp.tanh(x @ weight), "activation")
            return x

        def loss(weights, x):
            return jnp.sum(jax.checkpoint(layers, policy=policy)(weights, x) ** 2)

        weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)] * LAYERS
        x = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32)
        return jax.jit(jax.grad(loss)).lower(weights, x).compile().memory_analysis().temp_size_in_bytes

    policies = jax.checkpoint_policies
    host = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["activation"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    assert temp_bytes(host) == temp_bytes(policies.save_only_these_names("activation"))
