"""Exports, read back by readers that others wrote where those are at hand."""

from __future__ import annotations

import gzip
import importlib.util
import pickle
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xla_stalloc import hlo
from xla_stalloc.packing import instance
from xla_stalloc.packing.solve import solve
from xla_stalloc.report.exports import FORMATS, export
from xla_stalloc.report.exports.schema import pprof_pb2
from xla_stalloc.report.map.boxes import MemoryMap, memory_map
from xla_stalloc.report.map.labels import labels


@pytest.fixture
def drawn(compiled: Any) -> MemoryMap:
    return memory_map(hlo.open(compiled))


def at_peak(drawn: MemoryMap) -> np.ndarray:
    return np.flatnonzero((drawn.start <= drawn.peak_time) & (drawn.peak_time < drawn.end))


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_map_gives_the_same_bytes(drawn: MemoryMap, form: str) -> None:
    assert export(drawn, form) == export(drawn, form)


def test_csv_is_a_problem_that_can_be_packed(drawn: MemoryMap, tmp_path: Path) -> None:
    path = tmp_path / "problem.csv"
    path.write_bytes(export(drawn, "csv"))
    problem = instance.read(path)
    temps = (drawn.band == 0) & (drawn.end > drawn.start)
    assert len(problem.ids) == len(set(drawn.block[temps].tolist()))
    assert (problem.alignment == drawn.alignment).all()
    # At each time no less is live in it than in the map, and outside of loops no more.
    tables = np.array([value.shape.is_tuple for value in drawn.values], bool)
    for time, live in enumerate(drawn.live.tolist()):
        pointers = int(drawn.bytes[temps & tables & (drawn.start <= time) & (time < drawn.end)].sum())
        alive = (problem.lower <= time) & (time < problem.upper)
        there = int(problem.size[alive].sum())
        assert there >= live + pointers
        if "while" not in {value.instruction.opcode for value in drawn.values} and not tables.any():
            assert there == live
    if problem.ids:
        assert solve(problem.problem(), seconds=0.2).lower_bound >= drawn.peak_bytes


def test_memory_viz_holds_plain_data_that_adds_up(drawn: MemoryMap) -> None:
    content = pickle.loads(export(drawn, "memory_viz"))
    (events,) = content["device_traces"]
    counts = Counter(event["action"] for event in events)
    boxes = int((drawn.end > drawn.start).sum())
    stay = sum(block["state"] == "active_allocated" for s in content["segments"] for block in s["blocks"])
    assert counts["alloc"] == boxes and counts["free_requested"] == counts["free_completed"] == boxes - stay
    for segment in content["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    live: dict[int, int] = {}
    for event in events:
        if event["action"] == "alloc":
            assert event["addr"] not in live
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            assert live.pop(event["addr"]) == event["size"]
    assert sum(live.values()) == sum(segment["active_size"] for segment in content["segments"])


def test_memory_viz_is_read_by_torch(drawn: MemoryMap) -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    # The file itself, which needs nothing of torch: a torch made for CUDA cannot be imported without its libraries.
    reader = importlib.util.spec_from_file_location("memory_viz", Path(spec.origin).parent / "cuda" / "_memory_viz.py")
    assert reader is not None and reader.loader is not None
    viewer = importlib.util.module_from_spec(reader)
    reader.loader.exec_module(viewer)
    content = pickle.loads(export(drawn, "memory_viz"))
    told = viewer.trace(content)
    assert told.count("= cudaMalloc(") == len(content["segments"])
    allocations = re.findall(r"^\w+ = \w+\[\d+:", told, re.MULTILINE)
    assert len(allocations) == int((drawn.end > drawn.start).sum())
    assert "segment" in viewer.segsum(content)
    assert "<html" in viewer.trace_plot(content).lower()
    assert "<html" in viewer.segment_plot(content).lower()


def test_perfetto_reads_it_by_its_own_schema(drawn: MemoryMap) -> None:
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    data = export(drawn, "perfetto")
    trace = schema.Trace.FromString(data)
    # Every field is one that Perfetto knows, in the form that it expects: nothing is lost on the way through it.
    assert schema.Trace.FromString(trace.SerializeToString()) == trace
    for packet in trace.packet:
        assert packet.HasField("track_event") != packet.HasField("track_descriptor")
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    stacks: dict[int, list[str]] = {track: [] for track in tracks}
    counted, begun, last = list[int](), Counter[str](), 0
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last
        last, event = packet.timestamp, packet.track_event
        if event.type == schema.TrackEvent.TYPE_COUNTER:
            counted.append(event.counter_value)
        elif event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            assert not stacks[event.track_uuid], "slices of a track do not overlap"
            stacks[event.track_uuid].append(event.name)
            begun[event.name] += "buffer" in event.categories
        else:
            stacks[event.track_uuid].pop()
    assert counted == drawn.live.tolist()
    assert not any(stacks.values())
    names = Counter(name for name, wide in zip(labels(drawn).name, drawn.end > drawn.start, strict=True) if wide)
    assert +begun == names


def test_perfetto_is_read_by_trace_processor(drawn: MemoryMap, tmp_path: Path) -> None:
    processor = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if processor is None:
        pytest.skip("no trace_processor on PATH")
    path, query = tmp_path / "trace", tmp_path / "query.sql"
    path.write_bytes(export(drawn, "perfetto"))
    query.write_text("select max(value) from counter;")
    told = subprocess.run([processor, "-q", query, path], capture_output=True, text=True, check=True).stdout
    assert float(told.split()[-1]) == drawn.peak_bytes


def test_pprof_holds_the_peak(drawn: MemoryMap) -> None:
    profile = pprof_pb2.Profile.FromString(gzip.decompress(export(drawn, "pprof")))
    assert [profile.string_table[kind.type] for kind in profile.sample_type] == ["live_objects", "live_space"]
    assert sum(sample.value[1] for sample in profile.sample) == int(drawn.bytes[at_peak(drawn)].sum())
    locations = {location.id for location in profile.location}
    assert all(set(sample.location_id) <= locations and sample.location_id for sample in profile.sample)


def test_pprof_is_read_by_go(drawn: MemoryMap, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on PATH, so no go tool pprof")
    path = tmp_path / "peak.pb.gz"
    path.write_bytes(export(drawn, "pprof"))
    command = [go, "tool", "pprof", "-raw", path]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)}).stdout
    samples = re.search(r"live_objects/count live_space/bytes\[dflt\]\n(.*?)\nLocations", told, re.DOTALL)
    assert samples is not None
    counts = [int(bytes) for bytes in re.findall(r"^ +1 +(\d+):", samples[1], re.MULTILINE)]
    assert sorted(counts) == sorted(drawn.bytes[at_peak(drawn)].tolist())
    assert "programs.py" in told or not drawn.peak_bytes
