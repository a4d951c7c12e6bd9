"""Sizes in memory as people and compilers write them."""

from __future__ import annotations

import re
from typing import NamedTuple

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}

_SIZE = re.compile(r"(\d[\d,]*(?:\.\d+)?|\.\d+)\s*([kKMGTP]?)(i?B|bytes?|)")


class Growth(NamedTuple):
    """How much more is allowed: a percentage of what was, or bytes."""

    percent: float | None
    bytes: int | None

    def __str__(self) -> str:
        """As it is typed: `2%`, or bytes."""
        return f"{self.percent:g}%" if self.percent is not None else f"{self.bytes:,} bytes"

    def allows(self, before: int, after: int) -> bool:
        """Whether `after` bytes are no more than `before` and what may be added."""
        allowed = before * self.percent / 100 if self.percent is not None else self.bytes
        assert allowed is not None
        return after - before <= allowed


def parse(text: str) -> int:
    """Bytes of ``4096``, ``64MB`` (decimal), ``64MiB``, ``64M`` (binary, as XLA writes it) or ``4,096 bytes``.

    Raises:
        ValueError: it is not a size; the message shows how one is written.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write bytes such as 4096, 64MB, 64MiB or 1.5GiB")
    number, unit, suffix = match.groups()
    base = 1000 if suffix == "B" and unit else 1024
    bytes_per_unit: int = base ** _POWERS[unit.upper()]
    return round(float(number.replace(",", "")) * bytes_per_unit)


def parse_growth(text: str) -> Growth:
    """What may be added: ``2%`` or a size.

    Raises:
        ValueError: it is neither.
    """
    if text.strip().endswith("%"):
        try:
            percent = float(text.strip().removesuffix("%"))
        except ValueError:
            percent = -1.0
        if not 0 <= percent < float("inf"):
            raise ValueError(f"{text!r} is not a percentage; write 2% for example")
        return Growth(percent, None)
    return Growth(None, parse(text))


def gib(count: int) -> str:
    """Bytes in GiB with two digits, as cards and pools are measured."""
    return f"{count / 2**30:.2f} GiB"
