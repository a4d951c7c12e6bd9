"""A decoder-only transformer in Flax Linen."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    """Causal attention, then an MLP, each added to its input; `x` is `[batch, seq, width]`."""

    width: int
    heads: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns an array like `x`."""
        heads = (self.heads, self.width // self.heads)
        qkv = nn.DenseGeneral((3, *heads), use_bias=False, name="qkv")(nn.LayerNorm()(x))
        q, k, v = jnp.moveaxis(qkv, 2, 0)
        attention = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + nn.DenseGeneral(self.width, axis=(-2, -1), use_bias=False, name="out")(attention)
        hidden = nn.gelu(nn.Dense(4 * self.width, use_bias=False, name="up")(nn.LayerNorm()(x)))
        return x + nn.Dense(self.width, use_bias=False, name="down")(hidden)


class GPT(nn.Module):
    """Embedding, `layers` blocks, norm and head: tokens `[batch, seq]` to logits `[batch, seq, vocab]`.

    `scan` compiles one block in a loop over stacked parameters; `remat` recomputes a block's activations in the
    backward pass (`jax.checkpoint`).
    """

    layers: int
    width: int
    heads: int
    vocab: int
    scan: bool = False
    remat: bool = False

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Returns the logits."""
        x = nn.Embed(self.vocab, self.width, name="embed")(tokens)
        # Inside a loop nothing can be merged with the recomputation, so its guards would only cost.
        block = nn.remat(Block, prevent_cse=not self.scan) if self.remat else Block
        if self.scan:
            stack: Any = nn.scan(
                lambda layer, carry, _: (layer(carry), None),
                variable_axes={"params": 0},
                split_rngs={"params": True},
                length=self.layers,
            )
            x, _ = stack(block(self.width, self.heads, name="blocks"), x, None)
        else:
            for i in range(self.layers):
                x = block(self.width, self.heads, name=f"block_{i}")(x)
        return nn.Dense(self.vocab, use_bias=False, name="head")(nn.LayerNorm()(x))
