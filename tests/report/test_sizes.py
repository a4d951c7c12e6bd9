"""Sizes as people and compilers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xla_stalloc.report.sizes import gib, parse, parse_growth


@pytest.mark.parametrize(
    ("text", "bytes"),
    [
        ("4096", 4096),
        ("64MB", 64 * 10**6),
        ("64 MiB", 64 * 2**20),
        ("64M", 64 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("4,096 bytes", 4096),
        ("0B", 0),
        ("528.00M", 528 * 2**20),
        ("2kB", 2000),
        ("3.84T", round(3.84 * 2**40)),
    ],
)
def test_sizes(text: str, bytes: int) -> None:
    assert parse(text) == bytes


@pytest.mark.parametrize("text", ["", "-1", "2%", "many", "5 parsecs", "1.2.3", "MB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse(text)


@given(st.integers(0, 2**50))
def test_plain_bytes_are_exact(count: int) -> None:
    assert parse(str(count)) == parse(f"{count:,}") == parse(f"{count}B") == count


def test_growth() -> None:
    assert parse_growth("2%").allows(100, 102) and not parse_growth("2%").allows(100, 103)
    assert parse_growth("1kB").allows(0, 1000) and not parse_growth("1kB").allows(0, 1001)
    assert parse_growth("0%").allows(5, 4)
    for text in ("-2%", "nan%", "inf%", "%", "two"):
        with pytest.raises(ValueError, match=r"not a (percentage|size)"):
            parse_growth(text)


def test_gib() -> None:
    assert gib(3 * 2**29) == "1.50 GiB"
