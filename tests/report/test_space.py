"""What is lost at the peak, against a placement that is easy to count by hand."""

from __future__ import annotations

from xla_stalloc import hlo
from xla_stalloc.lifetimes import of
from xla_stalloc.report.analyze import analyze
from xla_stalloc.report.groups import grouped
from xla_stalloc.report.model import LiveBuffer
from xla_stalloc.report.space import space

ODD = """HloModule odd, is_scheduled=true

ENTRY %e (x: f32[3]) -> f32[3] {
  %x = f32[3]{0} parameter(0)
  %a = f32[3]{0} sine(%x)
  %b = f32[3]{0} cosine(%x)
  %e = f32[3]{0} tan(%x)
  %f = f32[3]{0} add(%b, %e)
  %c = f32[3]{0} add(%a, %f)
  ROOT %d = f32[3]{0} reverse(%c), dimensions={0}
}
"""


def test_alignment_is_padding() -> None:
    lifetimes = of(hlo.open(ODD))
    lost = space(lifetimes.module, lifetimes, lifetimes.assignment())
    # Two values of 12 bytes, each at a multiple of 64; behind the last one, the allocation ends.
    live = lifetimes.assignment().peak_live_bytes
    assert live == 24
    assert lost.padding_bytes == 64 - 12
    assert (lost.hole_bytes, lost.largest_hole_bytes) == (0, 0)
    assert lost.largest_block_bytes == lifetimes.assignment().temp_bytes == 64 + 12


def test_bytes_of_temps_add_up(compiled: object) -> None:
    (report,) = analyze(compiled).modules
    assert report.order_bound_bytes == report.temp_peak_live_bytes
    if report.hole_bytes is None:
        assert "holes" in report.reason
        return
    assert report.largest_hole_bytes is not None and report.largest_hole_bytes <= report.hole_bytes
    assert report.hole_bytes + report.temp_peak_live_bytes <= report.temp_bytes
    # What is neither live nor a hole is padding, some of which lies outside the temps, or tables of pointers.
    assert report.largest_block_bytes >= max(report.temp_bytes, *(b.bytes for b in report.live_at_peak), 0)
    for groups in report.groups.values():
        assert sum(group.bytes for group in groups) == sum(b.bytes for b in report.live_at_peak)
        assert sum(group.buffers for group in groups) == len(report.live_at_peak)
        assert [group.bytes for group in groups] == sorted((g.bytes for g in groups), reverse=True)


def test_groups() -> None:
    live = (
        LiveBuffer("a", 10, "f32[]", "/x/y/t.py:3", "temp", "jit(f)/jvp(A)/dot_general", role="residual", layer="A"),
        LiveBuffer("b", 30, "f32[]", "/x/y/t.py:3", "temp", "jit(f)/jvp(B)/dot_general", role="temp", layer="B"),
        LiveBuffer("w", 25, "f32[]", "w", "argument", "w", role="parameter", layer="B"),
    )
    told = {by: [(g.name, g.bytes, g.buffers) for g in grouped(live, by)] for by in ("role", "layer", "op", "source")}
    assert told == {
        "role": [("temp", 30, 1), ("parameter", 25, 1), ("residual", 10, 1)],
        "layer": [("B", 55, 2), ("A", 10, 1)],
        "op": [("dot_general", 40, 2), ("argument", 25, 1)],
        "source": [("y/t.py:3", 40, 2), ("w", 25, 1)],
    }
