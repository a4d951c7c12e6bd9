"""Errors as they stand in records."""

from __future__ import annotations


def in_short(error: BaseException) -> str:
    """An error as part of a reason: its type and first line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
