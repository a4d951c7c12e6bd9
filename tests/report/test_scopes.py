"""Phases and layers from the paths that JAX writes."""

from __future__ import annotations

import pytest

from xla_stalloc.report.scopes import layer_of, number_of, phase_of


@pytest.mark.parametrize(
    ("op_name", "phase", "layer"),
    [
        ("jit(step)/jvp(GPT)/block_0/vmap()/div", "forward", "block_0"),
        ("jit(step)/transpose(jvp(GPT))/block_143/LayerNorm_1/reduce_sum", "backward", "block_143"),
        ("jit(step)/transpose(jvp(jvp()))/checkpoint/rematted_computation/dot_general", "recomputed", ""),
        ("jit(step)/jvp()/while/body/dot_general", "forward", ""),
        ("jit(step)/sub", "", ""),
        ("jit(loss)/jvp(layer_2)/tanh", "forward", "layer_2"),
        ("jit(loss)/transpose(jvp(layer_2))/jit(exp2)/mul", "backward", "layer_2"),
        ("jit(step)/jvp()/jit(exp2)/mul", "forward", ""),
        ("jit(step)/jvp()/log1p", "forward", ""),
        ("state.opt_state[0].nu['params']['block_33']['LayerNorm_0']['bias']", "", "block_33"),
        ("st['m']['layers'][15]['wk']", "", "layers_15"),
        ("st['p']['emb']", "", ""),
        ("", "", ""),
    ],
)
def test_phase_and_layer(op_name: str, phase: str, layer: str) -> None:
    assert phase_of(op_name) == phase
    assert layer_of(op_name) == layer


def test_layers_are_sorted_by_number() -> None:
    assert sorted(["block_10", "block_9", "a_1", "block"], key=number_of) == ["a_1", "block", "block_9", "block_10"]
