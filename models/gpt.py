"""The GPT training steps: one transformer, in Linen and in NNX, unrolled or scanned, with or without remat."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from . import data, gpt_linen, gpt_nnx
from .errors import ModelError
from .spec import ModelSpec
from .training import cross_entropy, training

RULES = {
    "embed/embedding": ("model", None),
    "qkv/kernel": (None, None, "model", None),
    "out/kernel": ("model", None, None),
    "up/kernel": (None, "model"),
    "down/kernel": ("model", None),
    "head/kernel": (None, "model"),
}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Small enough for a laptop's CPU; `seq` and `vocab` count tokens, `width` is the size of a token's vector."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    batch: int = 16
    seq: int = 128
    vocab: int = 256

    def __post_init__(self) -> None:
        """Raises ModelError where the heads do not divide the width."""
        if self.width % self.heads:
            raise ModelError(f"heads={self.heads} does not divide width={self.width}")


def gpt(name: str, sizes: Sizes, *, nnx_api: bool = False, scan: bool = False, remat: bool = False) -> ModelSpec:
    """The spec of one variant."""
    make = _nnx if nnx_api else _linen
    init_params, apply = make(sizes, scan, remat)

    def loss(params: Any, batch: Any) -> jax.Array:
        tokens, following = batch
        return cross_entropy(apply(params, tokens), following)

    init, step = training(init_params, loss, learning_rate=3e-3)
    return ModelSpec(
        name=name,
        sizes=dataclasses.asdict(sizes),
        init=init,
        step=step,
        batch=functools.partial(data.affine_tokens, batch=sizes.batch, seq=sizes.seq, vocab=sizes.vocab),
        rules=RULES,
        divisible={"data": {"batch": sizes.batch}, "model": {"heads": sizes.heads, "vocab": sizes.vocab}},
    )


def _linen(sizes: Sizes, scan: bool, remat: bool) -> tuple[Any, Any]:
    model = gpt_linen.GPT(sizes.layers, sizes.width, sizes.heads, sizes.vocab, scan=scan, remat=remat)
    tokens = jnp.zeros((1, sizes.seq), jnp.int32)
    return lambda key: model.init(key, tokens), model.apply


def _nnx(sizes: Sizes, scan: bool, remat: bool) -> tuple[Any, Any]:
    def create(key: jax.Array) -> gpt_nnx.GPT:
        rngs = nnx.Rngs(params=key)
        return gpt_nnx.GPT(sizes.layers, sizes.width, sizes.heads, sizes.vocab, scan=scan, remat=remat, rngs=rngs)

    graph = nnx.graphdef(nnx.eval_shape(lambda: create(jax.random.key(0))))
    return lambda key: nnx.state(create(key)), lambda params, tokens: nnx.merge(graph, params)(tokens)
