"""What the compilers say when a program does not fit."""

from __future__ import annotations

import re

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SIZE = r"(?P<{}>[\d.]+)(?P<{}_unit>[KMGTP]?)i?B?"
_NEEDED, _LIMIT = _SIZE.format("needed", "needed"), _SIZE.format("limit", "limit")
# libtpu's two ways to say it, and that of XLA's GPU compiler.
_MESSAGES = (
    re.compile(rf"total memory required for [\w ]+\({_NEEDED}\) exceeds available HBM \({_LIMIT}\)"),
    re.compile(rf"Used {_NEEDED} of {_LIMIT} hbm", re.IGNORECASE),
    re.compile(rf"[Rr]equire[sd]? {_NEEDED}[^.]*?(?:limit|available)\D*{_LIMIT}"),
)


def is_exhausted(error: str) -> bool:
    """Whether a compiler's error says that memory ran out."""
    return "RESOURCE_EXHAUSTED" in error


def parse(error: str) -> tuple[int, int] | None:
    """Bytes needed for temporaries, and bytes that there are; None if the error does not tell."""
    for message in _MESSAGES:
        if match := message.search(error):
            return _bytes(match["needed"], match["needed_unit"]), _bytes(match["limit"], match["limit_unit"])
    return None


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * _UNITS[unit.upper()])
