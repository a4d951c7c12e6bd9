"""A Llama-like decoder (Touvron et al., 2023, arXiv:2302.13971), scanned over its layers, for meshes of many devices.

Parameters and optimizer state are float32, arithmetic is bfloat16. The mesh axis `fsdp` splits the batch and one axis
of each matrix (Rajbhandari et al., 2020, arXiv:1910.02054), `tp` splits heads, hidden units and the vocabulary.
Nothing is ever initialized here: the step is for compiling.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .errors import ModelError
from .training import TrainState, cross_entropy

AXES = ("fsdp", "tp")
_EPSILON = 1e-5
_ROTARY_BASE = 500_000.0

REMAT: dict[str, Any] = {
    "none": None,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
}
"""What the backward pass finds saved: everything, the products with matrices, or only each layer's input."""

OPTIMIZERS: dict[str, Callable[[float], optax.GradientTransformation]] = {
    "adamw": optax.adamw,
    "lion": optax.lion,
    "adafactor": optax.adafactor,
    "sgd": optax.sgd,
}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of the public models; `batch` counts sequences over all devices, `accumulation` the parts that it is cut into."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocab: int = 128_256
    batch: int = 64
    seq: int = 2048
    remat: str = "full"
    accumulation: int = 1
    optimizer: str = "adamw"

    def __post_init__(self) -> None:
        """Raises ModelError where sizes do not divide each other, or a choice is none of those that there are."""
        for name, choice, choices in (("remat", self.remat, REMAT), ("optimizer", self.optimizer, OPTIMIZERS)):
            if choice not in choices:
                raise ModelError(f"{name}='{choice}' is none of {', '.join(choices)}")
        for what, value, by, divisor in (
            ("width", self.width, "heads", self.heads),
            ("heads", self.heads, "kv_heads", self.kv_heads),
            ("batch", self.batch, "accumulation", self.accumulation),
        ):
            if value % divisor:
                raise ModelError(f"{by}={divisor} does not divide {what}={value}")


SIZES = {
    "llama_tiny": functools.partial(
        Sizes, layers=2, width=64, heads=4, kv_heads=4, hidden=128, vocab=256, batch=16, seq=32
    ),
    "llama_1b": functools.partial(Sizes, layers=16, width=2048, heads=32, kv_heads=8, hidden=8192),
    "llama_8b": functools.partial(Sizes, layers=32, width=4096, heads=32, kv_heads=8, hidden=14336),
}


def make_step(mesh: Mesh, sizes: Sizes) -> tuple[Any, tuple[TrainState, Any]]:
    """The jitted step, its state donated, and its abstract arguments `(state, (tokens, labels))`.

    Raises:
        ModelError: the mesh has other axes than `fsdp` and `tp`, or they do not divide what they split.
    """
    _check(mesh, sizes)
    specs = _specs(mesh)
    optimizer = OPTIMIZERS[sizes.optimizer](3e-4)
    params = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in _shapes(sizes).items()}
    params_sharding = {name: NamedSharding(mesh, specs[name]) for name in params}
    replicated = NamedSharding(mesh, PartitionSpec())
    opt_state = jax.eval_shape(optimizer.init, params)
    # Moments lie as their parameters do; what has another shape (adafactor's rows and columns) is small.
    opt_sharding = optax.tree_map_params(
        optimizer,
        lambda moment, param, sharding: sharding if moment.shape == param.shape else replicated,
        opt_state,
        params,
        params_sharding,
        transform_non_params=lambda _: replicated,
    )
    state_sharding = TrainState(params_sharding, opt_sharding)
    state = jax.tree.map(_abstract, TrainState(params, opt_state), state_sharding)
    tokens = jax.ShapeDtypeStruct(
        (sizes.batch, sizes.seq), jnp.int32, sharding=NamedSharding(mesh, _spec(mesh, "fsdp", None))
    )
    step = jax.jit(
        functools.partial(_step, sizes=sizes, mesh=mesh, optimizer=optimizer, params_sharding=params_sharding),
        donate_argnums=0,
        out_shardings=(state_sharding, replicated),
    )
    return step, (state, (tokens, tokens))


def _check(mesh: Mesh, sizes: Sizes) -> None:
    if unknown := set(mesh.axis_names) - set(AXES):
        raise ModelError(f"a llama is split over the mesh axes fsdp and tp, not {', '.join(sorted(unknown))}")
    for axis, names in (("fsdp", ("batch", "width")), ("tp", ("heads", "kv_heads", "hidden", "vocab"))):
        size = mesh.shape.get(axis, 1)
        for name in names:
            value = getattr(sizes, name) // (sizes.accumulation if name == "batch" else 1)
            if value % size:
                part = " / accumulation" if name == "batch" and sizes.accumulation > 1 else ""
                raise ModelError(f"the mesh axis {axis}={size} does not divide {name}{part} = {value}")


def _shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    layers, width, hidden, size = sizes.layers, sizes.width, sizes.hidden, sizes.width // sizes.heads
    return {
        "embed": (sizes.vocab, width),
        "norm1": (layers, width),
        "q": (layers, width, sizes.heads, size),
        "k": (layers, width, sizes.kv_heads, size),
        "v": (layers, width, sizes.kv_heads, size),
        "o": (layers, sizes.heads, size, width),
        "norm2": (layers, width),
        "gate": (layers, width, hidden),
        "up": (layers, width, hidden),
        "down": (layers, hidden, width),
        "norm": (width,),
        "head": (width, sizes.vocab),
    }


def _specs(mesh: Mesh) -> dict[str, PartitionSpec]:
    by_head = _spec(mesh, None, "fsdp", "tp", None)
    into = _spec(mesh, None, "fsdp", "tp")
    return {
        "embed": _spec(mesh, "tp", "fsdp"),
        "norm1": PartitionSpec(),
        "q": by_head,
        "k": by_head,
        "v": by_head,
        "o": _spec(mesh, None, "tp", None, "fsdp"),
        "norm2": PartitionSpec(),
        "gate": into,
        "up": into,
        "down": _spec(mesh, None, "tp", "fsdp"),
        "norm": PartitionSpec(),
        "head": _spec(mesh, "fsdp", "tp"),
    }


def _spec(mesh: Mesh, *axes: str | None) -> PartitionSpec:
    """Without the axes that the mesh lacks."""
    return PartitionSpec(*(axis if axis in mesh.axis_names else None for axis in axes))


def _abstract(x: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def _step(
    state: TrainState, batch: Any, *, sizes: Sizes, mesh: Mesh, optimizer: Any, params_sharding: Any
) -> tuple[TrainState, jax.Array]:
    differentiate = jax.value_and_grad(functools.partial(_loss, sizes=sizes, mesh=mesh))
    if sizes.accumulation == 1:
        loss, gradients = differentiate(state.params, batch)
    else:
        loss, gradients = _accumulate(differentiate, state.params, batch, sizes, mesh)
    gradients = jax.lax.with_sharding_constraint(gradients, params_sharding)
    updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
    return TrainState(optax.apply_updates(state.params, updates), opt_state), loss


def _accumulate(differentiate: Any, params: Any, batch: Any, sizes: Sizes, mesh: Mesh) -> tuple[jax.Array, Any]:
    """The mean of the loss and of the gradients over `accumulation` parts of the batch, one after the other."""

    def cut(x: jax.Array) -> jax.Array:
        # Each part takes its rows from all devices, so that none of them has to be moved.
        parts = x.reshape(-1, sizes.accumulation, *x.shape[1:]).swapaxes(0, 1)
        constrained: jax.Array = jax.lax.with_sharding_constraint(parts, NamedSharding(mesh, _spec(mesh, None, "fsdp")))
        return constrained

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, differentiate(params, part)), None

    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    total, _ = jax.lax.scan(add, zero, jax.tree.map(cut, batch))
    mean: tuple[jax.Array, Any] = jax.tree.map(lambda x: x / sizes.accumulation, total)
    return mean


def _loss(params: Any, batch: Any, *, sizes: Sizes, mesh: Mesh) -> jax.Array:
    tokens, labels = batch
    by_batch = NamedSharding(mesh, _spec(mesh, "fsdp", None, None))
    params = {name: value.astype(jnp.bfloat16) for name, value in params.items()}
    # Rows of the table have to be whole before they are looked up: what comes out is split by batch.
    table = jax.lax.with_sharding_constraint(params["embed"], NamedSharding(mesh, _spec(mesh, "tp", None)))
    x = jax.lax.with_sharding_constraint(table[tokens], by_batch)
    stacked = {name: value for name, value in params.items() if name not in ("embed", "norm", "head")}

    def block(x: jax.Array, layer: Any) -> tuple[jax.Array, None]:
        return jax.lax.with_sharding_constraint(_block(x, layer), by_batch), None

    if (policy := REMAT[sizes.remat]) is not None:
        # Inside a loop nothing can be merged with the recomputation, so its guards would only cost.
        block = jax.checkpoint(block, policy=policy, prevent_cse=False)
    x, _ = jax.lax.scan(block, x, stacked)
    logits = _norm(x, params["norm"]) @ params["head"]
    return cross_entropy(logits.astype(jnp.float32), labels)


def _block(x: jax.Array, layer: Any) -> jax.Array:
    """Attention, then a gated MLP, each added to its input; `x` is `[batch, seq, width]`."""
    y = _norm(x, layer["norm1"])
    q, k, v = (jnp.einsum("bsd,dhk->bshk", y, layer[name]) for name in "qkv")
    attention = jax.nn.dot_product_attention(_rotate(q), _rotate(k), v, is_causal=True)
    x = x + jnp.einsum("bshk,hkd->bsd", attention, layer["o"])
    y = _norm(x, layer["norm2"])
    out: jax.Array = x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]
    return out


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    normed: jax.Array = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + _EPSILON)
    return normed.astype(x.dtype) * scale


def _rotate(x: jax.Array) -> jax.Array:
    """Rotary position embedding (Su et al., 2021, arXiv:2104.09864) of `[batch, seq, heads, size]`."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None, None] / _ROTARY_BASE ** (jnp.arange(half) / half)
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    a, b = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)
