"""Synthetic data that can be learned, made from a batch number: no downloads, the same on every host."""

from __future__ import annotations

import numpy as np


def affine_tokens(index: int, batch: int, seq: int, vocab: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences in which each token follows from the one before: `next = (5 * token + 17) mod vocab`.

    Returns:
        Tokens and the tokens that follow them, both int32 of `[batch, seq]`.
    """
    tokens = np.empty((batch, seq + 1), np.int32)
    tokens[:, 0] = np.random.default_rng(index).integers(vocab, size=batch)
    for t in range(seq):
        tokens[:, t + 1] = (5 * tokens[:, t] + 17) % vocab
    return tokens[:, :-1], tokens[:, 1:]


def coloured_images(index: int, batch: int, side: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures, each in the colour of its class.

    Returns:
        Images, float32 of `[batch, side, side, 3]`, and their classes, int32 of `[batch]`.
    """
    colours = np.random.default_rng(0).normal(size=(classes, 1, 1, 3))
    random = np.random.default_rng(index + 1)
    labels = random.integers(classes, size=batch)
    images = colours[labels] + random.normal(size=(batch, side, side, 3))
    return images.astype(np.float32), labels.astype(np.int32)
