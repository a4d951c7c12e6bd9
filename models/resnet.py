"""A residual convolutional network (He et al., 2015, arXiv:1512.03385) in Flax Linen, for small pictures."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from . import data
from .errors import ModelError
from .spec import ModelSpec
from .training import cross_entropy, training

CLASSES = 10
GROUPS = 8
STAGES = 3

RULES = {
    "expand/kernel": (None, None, None, "model"),
    "contract/kernel": (None, None, "model", None),
}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """`layers` counts blocks per stage, `width` the channels of the first stage, `image` the pixels of a side."""

    layers: int = 2
    width: int = 16
    batch: int = 32
    image: int = 32

    def __post_init__(self) -> None:
        """Raises ModelError where the channels cannot be grouped or a stage would have no pixels."""
        if self.width % GROUPS:
            raise ModelError(f"width={self.width} is not a multiple of {GROUPS}, the groups of its normalisation")
        if self.image < 2 ** (STAGES - 1):
            raise ModelError(f"image={self.image} is too small to be halved {STAGES - 1} times")


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; `x` is `[batch, side, side, channels]`."""

    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Returns `[batch, side / stride, side / stride, self.channels]`."""
        strides = (self.stride, self.stride)
        y = nn.Conv(self.channels, (3, 3), strides, use_bias=False, name="expand")(x)
        y = nn.Conv(self.channels, (3, 3), use_bias=False, name="contract")(nn.relu(nn.GroupNorm(GROUPS)(y)))
        y = nn.GroupNorm(GROUPS)(y)
        if x.shape != y.shape:
            x = nn.Conv(self.channels, (1, 1), strides, use_bias=False, name="shortcut")(x)
        return nn.relu(x + y)


class ResNet(nn.Module):
    """Three stages of `layers` blocks; each stage halves the side and doubles the channels of the one before."""

    layers: int
    width: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Images `[batch, side, side, 3]` to logits `[batch, CLASSES]`."""
        x = nn.relu(nn.Conv(self.width, (3, 3), name="stem")(images))
        for stage in range(STAGES):
            for layer in range(self.layers):
                x = ResidualBlock(self.width * 2**stage, stride=2 if stage and not layer else 1)(x)
        return nn.Dense(CLASSES, name="head")(x.mean((1, 2)))


def resnet(name: str, sizes: Sizes) -> ModelSpec:
    """The spec of the classifier."""
    model = ResNet(sizes.layers, sizes.width)
    images = jnp.zeros((1, sizes.image, sizes.image, 3))

    def loss(params: Any, batch: Any) -> jax.Array:
        images, labels = batch
        logits: Any = model.apply(params, images)
        return cross_entropy(logits, labels)

    init, step = training(lambda key: model.init(key, images), loss, learning_rate=3e-3)
    return ModelSpec(
        name=name,
        sizes=dataclasses.asdict(sizes),
        init=init,
        step=step,
        batch=functools.partial(data.coloured_images, batch=sizes.batch, side=sizes.image, classes=CLASSES),
        rules=RULES,
        divisible={"data": {"batch": sizes.batch}, "model": {"width": sizes.width}},
    )
