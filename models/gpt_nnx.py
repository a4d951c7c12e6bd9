"""The same transformer in Flax NNX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    """Causal attention, then an MLP, each added to its input; `x` is `[batch, seq, width]`."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs) -> None:
        """Creates the parameters from `rngs`."""
        split = (heads, width // heads)
        self.attention_norm = nnx.LayerNorm(width, rngs=rngs)
        self.qkv = nnx.LinearGeneral(width, (3, *split), use_bias=False, rngs=rngs)
        self.out = nnx.LinearGeneral(split, width, axis=(-2, -1), use_bias=False, rngs=rngs)
        self.mlp_norm = nnx.LayerNorm(width, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns an array like `x`."""
        q, k, v = jnp.moveaxis(self.qkv(self.attention_norm(x)), 2, 0)
        x = x + self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True))
        return x + self.down(nnx.gelu(self.up(self.mlp_norm(x))))


class GPT(nnx.Module):
    """Embedding, `layers` blocks, norm and head: tokens `[batch, seq]` to logits `[batch, seq, vocab]`.

    `scan` compiles one block in a loop over stacked parameters; `remat` recomputes a block's activations in the
    backward pass (`jax.checkpoint`).
    """

    def __init__(
        self, layers: int, width: int, heads: int, vocab: int, *, scan: bool, remat: bool, rngs: nnx.Rngs
    ) -> None:
        """Creates the parameters from `rngs`."""
        self.embed = nnx.Embed(vocab, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, vocab, use_bias=False, rngs=rngs)
        self.scan = scan
        self.remat = remat
        self.blocks: Any
        if scan:
            stacked: Any = nnx.split_rngs(splits=layers)(nnx.vmap(lambda rngs: Block(width, heads, rngs)))
            self.blocks = stacked(rngs)
        else:
            self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Returns the logits."""

        def run(block: Block, x: jax.Array) -> jax.Array:
            return block(x)

        # Inside a loop nothing can be merged with the recomputation, so its guards would only cost.
        layer = nnx.remat(run, prevent_cse=not self.scan) if self.remat else run
        x = self.embed(tokens)
        if self.scan:
            x = nnx.scan(layer, in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(self.blocks, x)
        else:
            for block in self.blocks:
                x = layer(block, x)
        return self.head(self.norm(x))
