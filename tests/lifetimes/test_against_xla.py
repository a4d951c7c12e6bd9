"""Every buffer's live range, the heap trace, the offsets and the size of the temp allocation, against XLA's own dumps.

No exception is made for any buffer of any of these programs.
"""

import lzma
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from xla_stalloc import hlo, lifetimes

HERE = Path(__file__).parent
SCHEDULERS = {
    "breadth_first": "",
    "memory_optimized": "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}
PROGRAMS = re.findall(r"^def (\w+)\(", (HERE / "compile_programs.py").read_text(), flags=re.M)

# Programs of the real GPU and TPU compilers, each with XLA's live ranges beside it.
DEVICE_PROGRAMS = Path(os.environ.get("XLA_STALLOC_PROGRAMS") or HERE.parents[2] / "shared" / "programs")


@pytest.fixture(scope="module", params=SCHEDULERS)
def dumps(request, tmp_path_factory):
    """Folder with XLA's dumps of all programs under one of its schedulers."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = (
        f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto "
        f"--xla_force_host_platform_device_count=8 {SCHEDULERS[request.param]}"
    )
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "XLA_STALLOC": "off"}
    script = [sys.executable, str(HERE / "compile_programs.py")]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == PROGRAMS
    return folder


def _open(dumps, program):
    (proto,) = dumps.glob(f"*.jit_{program}.cpu_after_optimizations.hlo.pb")
    return hlo.open(proto), proto


def _xla_live_ranges(text):
    """(value, start, end) in the order of XLA's value ids."""
    text = text.split("BufferLiveRange:\n")[1].split("LiveRanges at")[0]
    found = re.findall(r"^    (\S+?)\{([\d,]*)\}(?: *\(phi\))?:(-?\d+)-(-?\d+)$", text, flags=re.M)
    return [(f"{name}{{{index}}}", int(start), int(end)) for name, index, start, end in found]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_live_range_equals_xlas(dumps, program):
    module, proto = _open(dumps, program)
    analysis = lifetimes.of(module)
    ours = [(repr(value), *analysis.live_range(value)) for value in analysis.values]
    assert ours == _xla_live_ranges(proto.with_name(proto.name.replace(".hlo.pb", "-live-range.txt")).read_text())
    assert len(ours) > 3


@pytest.mark.skipif(not DEVICE_PROGRAMS.is_dir(), reason="set XLA_STALLOC_PROGRAMS to a folder of device programs")
@pytest.mark.parametrize("name", ["gpu_1b_unrolled", "gpu_8b_unrolled", "tpu_tiny"])
def test_device_programs_too(name):
    """Asynchronous copies and collectives, and memory spaces other than the main one."""
    analysis = lifetimes.of(hlo.open(DEVICE_PROGRAMS / f"{name}.hlo.pb.xz"))
    ours = {repr(value): analysis.live_range(value) for value in analysis.values}
    with lzma.open(DEVICE_PROGRAMS / f"{name}.live-range.txt.xz", "rt") as file:
        theirs = {value: (start, end) for value, start, end in _xla_live_ranges(file.read())}
    assert ours == theirs and len(ours) > 1000


@pytest.mark.skipif(not DEVICE_PROGRAMS.is_dir(), reason="set XLA_STALLOC_PROGRAMS to a folder of device programs")
@pytest.mark.parametrize(
    "name", ["gpu_tiny", "gpu_1b_scan", "gpu_1b_unrolled", "gpu_1b_unrolled_nolhs", "gpu_8b_scan", "gpu_8b_unrolled"]
)
def test_heap_trace_and_offsets_of_gpu_programs_too(name):
    """XLA:GPU shares more: fusions and collectives write over operands of other shapes.

    Not compared: which of the equally large tables of tuples comes first behind the heap (docs/lifetimes.md).
    """
    ours, offsets = _same_heap(hlo.open(DEVICE_PROGRAMS / f"{name}.hlo.pb.xz"))
    tables = [value for value in ours.offsets if value.shape.is_tuple]
    assert {v: o for v, o in ours.offsets.items() if v not in tables} == {
        v: offsets[_key(v)] for v in ours.offsets if v not in tables
    }
    assert sorted(ours.offsets.values()) == sorted(offsets.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_heap_trace_and_offsets_equal_xlas(dumps, program):
    module, _ = _open(dumps, program)
    ours, offsets = _same_heap(module)
    assert {_key(value): offset for value, offset in ours.offsets.items()} == offsets


def _key(value):
    return (value.instruction.id, value.index)


def _same_heap(module):
    """Our assignment, and XLA's offset of each value, after the comparison of everything else."""
    theirs = module.buffer_assignment
    place = {b.id: (b.defined_at.instruction_id, tuple(b.defined_at.shape_index)) for b in theirs.logical_buffers}
    traced = [
        (("alloc", "free", "share_with")[e.kind], place[e.buffer_id], place.get(e.share_with_canonical_id))
        for trace in theirs.heap_simulator_traces
        for e in trace.events
    ]
    temporary = [
        a
        for a in theirs.buffer_allocations
        if not (a.is_thread_local or a.is_entry_computation_parameter or a.is_constant or a.maybe_live_out)
    ]
    offsets = {place[b.logical_buffer_id]: b.offset for a in temporary for b in a.assigned}
    sizes = {place[b.logical_buffer_id]: b.size for a in temporary for b in a.assigned}

    ours = lifetimes.of(module).assignment()

    shared = [with_ for kind, _, with_ in ours.events if kind == "share_with"]
    assert [(k, _key(v)) for k, v, _ in ours.events] == [(k, v) for k, v, _ in traced]
    assert [_key(value) for value in shared] == [with_ for kind, _, with_ in traced if kind == "share_with"]
    assert ours.temp_bytes == sum(a.size for a in temporary)
    assert ours.peak_live_bytes == _peak(traced, sizes)
    return ours, offsets


@pytest.mark.parametrize("program", PROGRAMS)
def test_thread_local_buffers_equal_xlas(dumps, program):
    module, _ = _open(dumps, program)
    theirs = module.buffer_assignment
    place = {b.id: (b.defined_at.instruction_id, tuple(b.defined_at.shape_index)) for b in theirs.logical_buffers}
    found = {kind: set() for kind in lifetimes.Kind}
    for buffer in lifetimes.of(module).applied_buffers:
        (value,) = buffer.values
        found[buffer.kind].add((value.instruction.id, value.index, buffer.bytes))

    def assigned(allocations):
        return [[(*place[b.logical_buffer_id], b.size) for b in a.assigned] for a in allocations]

    own = assigned(a for a in theirs.buffer_allocations if a.is_thread_local)
    assert sorted([buffer] for buffer in found[lifetimes.Kind.THREAD_LOCAL]) == sorted(own)
    constants = assigned(a for a in theirs.buffer_allocations if a.is_constant)
    assert all([buffer] in constants for buffer in found[lifetimes.Kind.CONSTANT])


def _peak(trace, sizes):
    """Most bytes live at once in a heap trace: memory that values share counts once."""
    owner, live, current, peak = {}, defaultdict(int), 0, 0
    for kind, value, shared in trace:
        if kind != "free":
            owner[value] = value if kind == "alloc" else owner[shared]
        change = -1 if kind == "free" else 1
        block = owner[value]
        if max(live[block], live[block] + change) == 1:
            current += change * sizes[block]
        live[block] += change
        peak = max(peak, current)
    return peak
