"""What an operation's path in the user's program tells: the phase of a training step, and the layer.

JAX writes the functions and transformations that led to an operation into its ``op_name``, from the outside in:
``jit(step)/transpose(jvp(GPT))/block_3/down/dot_general``. An argument has its place in the argument tree instead:
``state.params['params']['block_3']['down']['kernel']``.
"""

from __future__ import annotations

import re

FORWARD, RECOMPUTED, BACKWARD = "forward", "recomputed", "backward"

_LAYER = re.compile(r"[A-Za-z]\w*?\d+$")
_WORDS = re.compile(r"\w+")  # transformations are around what they transform: jvp(block_3)
_FUNCTIONS = re.compile(r"\bjit\(\w+\)")  # exp2, say, is no layer
_KEYS = re.compile(r"\['(\w+)'\](?:\[(\d+)\])?")


def phase_of(op_name: str) -> str:
    """`FORWARD`, `RECOMPUTED` (the forward of `jax.checkpoint`, for the backward), `BACKWARD`, or ``""`` for others."""
    if "transpose(" in op_name:
        return RECOMPUTED if "rematted_computation" in op_name else BACKWARD
    return FORWARD if "jvp(" in op_name else ""


def layer_of(op_name: str) -> str:
    """The outermost part of the path that is numbered, ``block_3`` say; ``""`` if there is none.

    Of an argument, the key that is numbered, or one that holds a list: ``['layers'][3]`` is ``layers_3``.
    """
    for key, number in _KEYS.findall(op_name):
        if number or _LAYER.match(key):
            return f"{key}_{number}" if number else key
    scopes, _, _ = _FUNCTIONS.sub("", op_name).rpartition("/")  # the last part is the operation itself
    return next((word for word in _WORDS.findall(scopes) if _LAYER.match(word)), "")


def number_of(layer: str) -> tuple[str, int]:
    """What sorts layers: their name without the number, and the number."""
    name = layer.rstrip("0123456789")
    return name, int(layer[len(name) :] or -1)
