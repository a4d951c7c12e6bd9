"""The map's boxes: they fit their bands, never overlap, and add up to XLA's own figures."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xla_stalloc import hlo
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import of
from xla_stalloc.report.analyze import analyze
from xla_stalloc.report.map.allocations import BANDS
from xla_stalloc.report.map.arena import aligned, arena
from xla_stalloc.report.map.boxes import MemoryMap, memory_map
from xla_stalloc.report.map.colours import SCHEMES, scheme
from xla_stalloc.report.map.labels import labels
from xla_stalloc.report.map.planned import planned_map

PROGRAMS = Path(os.environ.get("XLA_STALLOC_PROGRAMS") or Path(__file__).parents[4] / "shared" / "programs")


def check(drawn: MemoryMap) -> None:
    """What holds for every map."""
    assert (drawn.start <= drawn.end).all() and (drawn.start >= 0).all() and (drawn.end <= len(drawn.live)).all()
    bases = np.array([band.base for band in drawn.bands])
    tops = np.array([band.base + band.size for band in drawn.bands])
    assert (drawn.address >= bases[drawn.band]).all()
    assert (drawn.address + drawn.size <= tops[drawn.band]).all()
    assert (drawn.bytes <= drawn.size).all()
    in_main_memory = np.isin(drawn.band, [n for n, band in enumerate(drawn.bands) if band.name in BANDS])
    boxes = np.flatnonzero((drawn.end > drawn.start) & in_main_memory).tolist()
    for time in np.unique(drawn.start[boxes]).tolist():
        live = [box for box in boxes if drawn.start[box] <= time < drawn.end[box]]
        live.sort(key=lambda box: int(drawn.address[box]))
        for below, above in pairwise(live):
            assert drawn.address[below] + drawn.size[below] <= drawn.address[above], (drawn.values[below], time)


def test_what_xla_says_and_what_is_emulated(compiled: Any) -> None:
    module = hlo.open(compiled)
    drawn = memory_map(module)
    assert drawn.origin == "xla"
    check(drawn)
    memory = compiled.memory_analysis()
    sizes = {band.name: band.size for band in drawn.bands}
    state = sizes.get("state", 0)
    assert drawn.temp_bytes == memory.temp_size_in_bytes
    assert sizes.get("arguments", 0) + state == memory.argument_size_in_bytes
    assert sizes.get("outputs", 0) + state == memory.output_size_in_bytes
    assert state == memory.alias_size_in_bytes
    report = analyze(compiled).modules[0]
    assert drawn.peak_bytes == report.temp_peak_live_bytes
    if drawn.peak_bytes:
        assert drawn.peak_at == report.peak_at
    emulated = memory_map(hlo.open(compiled.runtime_executable().hlo_modules()[0]))
    assert emulated.origin == "emulated"
    check(emulated)
    # Constants of reducers have no time in the program, and only XLA's own list of allocations tells of them.
    assert [b for b in emulated.bands if b.name != "constants"] == [b for b in drawn.bands if b.name != "constants"]
    assert (emulated.live == drawn.live).all()
    assert emulated.live.tolist() == of(without_barriers(module)).live_bytes()


def test_the_plan_needs_no_more_and_is_packed_without_overlap(compiled: Any) -> None:
    module = hlo.open(compiled)
    stock, planned = memory_map(module), planned_map(module)
    assert planned.title == "planned" and planned.temp_bytes <= stock.temp_bytes
    check(planned)
    both = aligned([stock, planned])
    for before, after in zip((stock, planned), both, strict=True):
        check(after)
        assert (after.temp_bytes, after.peak_bytes) == (before.temp_bytes, before.peak_bytes)
    assert [(band.name, band.base) for band in both[0].bands] == [(band.name, band.base) for band in both[1].bands]
    assert planned.peak_bytes <= planned.temp_bytes


def test_several_programs_share_addresses_and_follow_each_other(compiled: Any) -> None:
    one = memory_map(hlo.open(compiled))
    alone, (only,) = arena([one])
    assert alone is one and (only.start, only.end) == (0, len(one.live))
    both, parts = arena([one, one])
    check(both)
    assert both.bands == one.bands
    assert [(part.module, part.start) for part in parts] == [(one.module, 0), (one.module, len(one.live))]
    assert both.live.tolist() == 2 * one.live.tolist()
    assert len(both.instructions) + 1 == len(both.live)
    first, second = np.split(both.block, 2)
    assert not set(first.tolist()) & set(second.tolist())


def test_every_box_is_told_of_and_coloured(compiled: Any) -> None:
    drawn = memory_map(hlo.open(compiled))
    told = labels(drawn)
    for number, value in enumerate(drawn.values):
        assert told.name[number].partition("{")[0] == value.instruction.name
        assert told.shape[number] == str(value.shape)
        assert told.dtype[number] == value.shape.element_type
        assert told.op_name[number] == value.instruction.op_name
        stack, lines = value.instruction.source_stack, told.stack[number].split("\n")
        for frame, line in zip(stack, lines[:12], strict=False):
            assert line.endswith(f":{frame.line} {frame.function}")
        assert (lines[-1] == "...") == (len(stack) > 12)
    for by in SCHEMES:
        colours = scheme(by, drawn, told)
        assert len(colours.names) == len(colours.colours)
        codes = colours.codes(told)
        assert len(codes) == len(drawn.values) and codes.max(initial=0) < len(colours.names)
        # A box of no width has none of the peak, a table of pointers has, so there may be a little more.
        assert sum(colours.live_at_peak(drawn, told)) >= drawn.peak_bytes


@pytest.mark.parametrize("name", ["gpu_tiny", "tpu_tiny", "gpu_1b_scan"])
def test_programs_of_other_compilers(name: str) -> None:
    path = PROGRAMS / f"{name}.hlo.pb.xz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    module = hlo.open(path)
    drawn = memory_map(module)
    check(drawn)
    temps = sum(a.size for a in module.buffer_assignment.buffer_allocations if _is_temp(a) and a.color == 0)
    assert drawn.temp_bytes == temps
    if "tpu" in name:
        assert any(band.name.startswith("memory space") for band in drawn.bands)
        assert (drawn.size[drawn.band == 0] > drawn.bytes[drawn.band == 0]).any()  # tiles are padded
        with pytest.raises(ValueError, match="cannot judge other orders"):
            planned_map(module)


def _is_temp(allocation: Any) -> bool:
    held = allocation.is_entry_computation_parameter or allocation.maybe_live_out or allocation.is_constant
    return not (held or allocation.is_thread_local)
