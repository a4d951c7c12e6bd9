"""The one error that models raise for a wrong name, size or mesh."""

from __future__ import annotations


class ModelError(ValueError):
    """A model, a size or a mesh that cannot work; the message says what is wrong and what to give instead."""
