"""Out-of-memory errors of the compilers: messages as they were printed."""

from __future__ import annotations

import pytest

from xla_stalloc.sharding import exhausted

_GIB = 2**30


@pytest.mark.parametrize(
    ("text", "needed", "limit"),
    [
        (
            "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
            "temporaries (20.52G) exceeds available HBM (15.75G). HLO module: jit_step.",
            int(20.52 * _GIB),
            int(15.75 * _GIB),
        ),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 512.5M of 7.48G hbm. Exceeded hbm "
            "capacity by 1.2G.",
            int(512.5 * 2**20),
            int(7.48 * _GIB),
        ),
    ],
)
def test_messages(text: str, needed: int, limit: int) -> None:
    assert exhausted.is_exhausted(text)
    assert exhausted.parse(text) == (needed, limit)


def test_other_errors() -> None:
    assert not exhausted.is_exhausted("INVALID_ARGUMENT: no")
    assert exhausted.parse("RESOURCE_EXHAUSTED: something else") is None
