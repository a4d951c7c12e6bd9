"""Best fit gives the offsets that XLA itself gave, on XLA's own record of what it put on its heap."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.packing import HeapItem, best_fit

CPU_ALIGNMENT, GPU_ALIGNMENT = 64, 256
PROGRAMS = Path(os.environ.get("XLA_STALLOC_PROGRAMS", Path(__file__).resolve().parents[3] / "shared" / "programs"))
GPU_PROGRAMS = sorted(PROGRAMS.glob("gpu_*.hlo.pb.xz"))
SCHEDULERS = {
    "breadth_first": "",
    "depth_first": "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


@pytest.fixture(scope="module", params=SCHEDULERS)
def dumped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, hlo_pb2.HloProto]:
    """The programs of compile_programs.py as XLA:CPU dumps them, buffer assignment and heap trace included."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_proto {SCHEDULERS[request.param]}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    subprocess.run([sys.executable, Path(__file__).with_name("compile_programs.py")], check=True, env=environment)
    return {
        file.name.split(".")[1]: hlo_pb2.HloProto.FromString(file.read_bytes())
        for file in folder.glob("*after_optimizations.hlo.pb")
    }


def test_same_offsets_as_xla_cpu(dumped):
    names = ["mlp", "attention", "checkpointed", "scanned", "looped", "updated", "convolved", "factorized"]
    items = {name: check(dumped[f"jit_{name}"], CPU_ALIGNMENT) for name in names}
    assert all(items.values()), items
    assert sum(items.values()) > 100, items


@pytest.mark.skipif(not GPU_PROGRAMS, reason=f"no GPU programs in {PROGRAMS} (XLA_STALLOC_PROGRAMS names the folder)")
@pytest.mark.parametrize("program", GPU_PROGRAMS, ids=lambda file: file.name.partition(".")[0])
def test_same_offsets_as_xla_gpu(program: Path):
    hlo = hlo_pb2.HloProto.FromString(lzma.decompress(program.read_bytes()))
    assert check(hlo, GPU_ALIGNMENT) > 100


def check(hlo: hlo_pb2.HloProto, alignment: int) -> int:
    """Replay the module's heap traces; the number of items placed."""
    assignment = hlo.buffer_assignment
    sizes = {buffer.id: buffer.size for buffer in assignment.logical_buffers}
    given = {a.logical_buffer_id: a.offset for held in assignment.buffer_allocations for a in held.assigned}
    count = 0
    for trace in assignment.heap_simulator_traces:
        groups = colocated(trace)
        items = [
            HeapItem(max(sizes[buffer] for buffer in group), list(group.values()), host)
            for host, group in groups.items()
        ]
        packed = best_fit(items, alignment)
        ours = {b: offset for group, offset in zip(groups.values(), packed.offsets, strict=True) for b in group}
        # XLA lays the temporary allocations of a module one behind the other after it has packed each.
        base = min(given[buffer] for buffer in ours)
        assert base % alignment == 0
        assert {buffer: base + offset for buffer, offset in ours.items()} == {buffer: given[buffer] for buffer in ours}
        count += len(items)
    return count


def colocated(trace: hlo_pb2.HeapSimulatorTrace) -> dict[int, dict[int, tuple[int, int]]]:
    """The lives of the buffers that share an offset, by the id of the one that was there first; a tick per event."""
    event_kind = hlo_pb2.HeapSimulatorTrace.Event
    host: dict[int, int] = {}
    starts: dict[int, int] = {}
    groups: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for time, event in enumerate(trace.events):
        if event.kind == event_kind.FREE:
            groups[host[event.buffer_id]][event.buffer_id] = (starts[event.buffer_id], time)
            continue
        shares = event.kind == event_kind.SHARE_WITH
        host[event.buffer_id] = host[event.share_with_canonical_id] if shares else event.buffer_id
        starts[event.buffer_id] = time
    return {first: dict(sorted(group.items(), key=lambda life: life[0] != first)) for first, group in groups.items()}
