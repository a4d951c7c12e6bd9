"""Sizes, places and cuts of the text form; its whole is held by the golden test of the command line."""

from __future__ import annotations

import pytest

from xla_stalloc.plan.explain import size, why_not_lower
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.report.model import Advice, LiveBuffer, MemoryReport, ModuleReport
from xla_stalloc.report.sources import shortened


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (23_300_000, "23.3 MB"), (6_000_000_000, "6.0 GB")],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("/home/user/project/train.py:12", "project/train.py:12"),
        ("train.py:12", "train.py:12"),
        ("state['a:b']", "state['a:b']"),
        ("", ""),
    ],
)
def test_places(source: str, short: str) -> None:
    assert shortened(source) == short


def test_long_lists_are_cut_and_counted() -> None:
    live = tuple(LiveBuffer(f"v{i}", 1000 - i, "f32[250]{0}", "a.py:1", "temp") for i in range(5))
    advice = tuple(Advice("avoidable-copy", f"copy {i}", 100) for i in range(5))
    report = ModuleReport(
        name="jit_f", platform="cpu", num_partitions=8, instructions=1234, figures="xla", argument_bytes=0,
        output_bytes=0, alias_bytes=0, temp_bytes=5000, live_at_peak=live, advice=advice, peak_at="v4",
        other_memory_bytes={"5": 77},
    )  # fmt: skip
    text = MemoryReport((report, report)).to_text(top=2)
    assert text.count("jit_f on cpu, 8 partitions, 1,234 instructions, per device") == 2
    assert "and 3 smaller ones, 3.0 kB together" in text
    assert "v1" in text and "v2" not in text
    assert "and 2 more of the same kind (avoidable-copy), 200 B together" in text
    assert "memory space 5" in text


def test_why_a_plan_is_not_lower() -> None:
    record = PlanRecord(module="f", stock_temp_bytes=100, temp_bytes=80, peak_live_bytes=70, lower_bound_bytes=60)
    assert (
        why_not_lower(record)
        == "20 B above the bound, which no order may reach; 10 B of it lie in holes between buffers"
    )
    assert why_not_lower(record.replace(lower_bound_bytes=80)) == "no order of these instructions needs less"
    assert why_not_lower(record.replace(lower_bound_bytes=0)).startswith("no bound is known; ")
    assert why_not_lower(record.because("budget")).endswith("; budget")
