"""The training step that all models share: loss, gradients, AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax


class TrainState(NamedTuple):
    """Parameters and the optimizer's state, both pytrees."""

    params: Any
    opt_state: Any


def training(
    init_params: Callable[[jax.Array], Any],
    loss: Callable[[Any, Any], jax.Array],
    learning_rate: float,
) -> tuple[Callable[[jax.Array], TrainState], Callable[[TrainState, Any], tuple[TrainState, jax.Array]]]:
    """`(init, step)` for `init_params(key) -> params` and `loss(params, batch) -> scalar`."""
    optimizer = optax.adamw(learning_rate)

    def init(key: jax.Array) -> TrainState:
        params = init_params(key)
        return TrainState(params, optimizer.init(params))

    def step(state: TrainState, batch: Any) -> tuple[TrainState, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(state.params, batch)
        updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
        return TrainState(optax.apply_updates(state.params, updates), opt_state), value

    return init, step


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean over all labels, in nats; logits `[..., classes]`, labels `[...]` of int32."""
    losses: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()
