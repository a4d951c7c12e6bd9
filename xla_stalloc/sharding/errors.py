"""The one error of this package."""

from __future__ import annotations


class FitError(ValueError):
    """A topology, mesh, program or compiler that cannot work; the message says what to change or to install."""
