"""The figures of a report are those of XLA, and its parts agree with each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

import xla_stalloc as stalloc
from xla_stalloc import hlo, lifetimes
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.report import peak
from xla_stalloc.report.analyze import analyze_module
from xla_stalloc.report.model import ModuleReport


def only(source: Any, **options: Any) -> ModuleReport:
    (report,) = stalloc.analyze(source, **options).modules
    return report


def figures(report: ModuleReport) -> tuple[int | None, ...]:
    return report.argument_bytes, report.output_bytes, report.alias_bytes, report.temp_bytes


def test_figures_equal_memory_analysis(compiled: Any) -> None:
    theirs = compiled.memory_analysis()
    expected = (
        theirs.argument_size_in_bytes,
        theirs.output_size_in_bytes,
        theirs.alias_size_in_bytes,
        theirs.temp_size_in_bytes,
    )
    told = only(compiled)
    assert told.figures == "xla"
    assert figures(told) == expected
    # Text says nothing of memory: all of it has to be found out.
    emulated = only(compiled.as_text())
    assert emulated.figures == "emulated"
    assert figures(emulated) == expected
    assert (emulated.temp_peak_live_bytes, emulated.peak_at) == (told.temp_peak_live_bytes, told.peak_at)
    serialized = only(compiled.runtime_executable().serialize())
    assert figures(serialized) == expected


def test_parts_agree(compiled: Any) -> None:
    report = only(compiled, plan=True)
    live = report.live_at_peak
    assert report.peak_bytes == report.argument_bytes + report.output_bytes - report.alias_bytes + report.temp_bytes
    assert report.temp_peak_live_bytes <= report.temp_bytes
    assert sum(b.bytes for b in live if b.kind == "temp" and not b.inside) == report.temp_peak_live_bytes
    assert sum(b.bytes for b in live if b.kind != "constant") <= report.peak_bytes
    assert [b.bytes for b in live] == sorted((b.bytes for b in live), reverse=True)
    assert report.peak_at in {i.name for i in hlo.open(compiled).instructions_by_id.values()}
    assert report.planned.stock_temp_bytes == report.temp_bytes
    assert report.planned.temp_bytes <= report.temp_bytes
    if report.lower_bound_bytes is None:
        assert "lower bound" in report.reason
    else:
        assert report.reason == ""
        assert report.lower_bound_bytes <= report.temp_peak_live_bytes
        assert report.lower_bound_bytes <= report.planned.temp_bytes


def test_json_has_what_it_promises(compiled: Any) -> None:
    report = stalloc.analyze(compiled)
    found = json.loads(report.to_json())
    assert found["schema"] == 1
    (module,) = found["modules"]
    promised = "name platform num_partitions instructions argument_bytes output_bytes alias_bytes temp_bytes"
    promised += " temp_peak_live_bytes peak_bytes peak_at lower_bound_bytes live_at_peak"
    assert set(promised.split()) <= module.keys()
    assert module["platform"] in ("cpu", "")
    assert all({"name", "bytes", "shape", "source", "kind"} <= buffer.keys() for buffer in module["live_at_peak"])
    assert {b["kind"] for b in module["live_at_peak"]} <= {"temp", "argument", "donated", "output", "constant"}


DUMPED = """
import jax, jax.numpy as jnp
def step(ws, x):
    grads = jax.grad(lambda ws: sum((jnp.tanh(x @ w) ** 2).sum() for w in ws))(ws)
    return [w - 0.1 * g for w, g in zip(ws, grads)], x.sum()
square = jax.ShapeDtypeStruct((64, 64), "float32")
jax.jit(step, donate_argnums=0).lower([square] * 4, square).compile()
jax.jit(lambda x: jnp.sort(x @ x, axis=0)[0]).lower(square).compile()
"""


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_proto --xla_dump_hlo_as_text"
    environment = {**os.environ, "XLA_FLAGS": flags, "XLA_STALLOC": "off"}
    subprocess.run([sys.executable, "-c", DUMPED], env=environment, check=True, capture_output=True)
    return folder


def test_the_emulated_peak_is_that_of_xlas_heap_trace(dump: Path) -> None:
    modules = hlo.open_all(dump)
    assert {"jit_step", "jit__lambda"} <= {module.name for module in modules}
    for module in modules:
        known = lifetimes.of(without_barriers(module))
        emulated = peak.from_emulation(known, known.assignment())
        traced = peak.from_traces(module, known)
        if emulated.bytes:
            assert traced is not None
            assert (traced.bytes, traced.at) == (emulated.bytes, emulated.at)
            assert {(b.name, b.kind, b.bytes) for b in traced.live} == {
                (b.name, b.kind, b.bytes) for b in emulated.live
            }


def test_totals_are_those_of_xlas_memory_usage_report(dump: Path) -> None:
    written = sorted(dump.glob("*memory-usage-report.txt"))
    assert written
    for path in written:
        total = re.search(r"Total bytes(?: used)?: *(\d+)", path.read_text())
        assert total is not None, path.read_text()[:500]
        (proto,) = dump.glob(path.name.partition("after_optimizations")[0] + "after_optimizations.hlo.pb")
        report = only(proto)
        assert int(total[1]) == report.peak_bytes + report.constant_bytes + thread_local_bytes(hlo.open(proto))


def thread_local_bytes(module: hlo.Module) -> int:
    """What XLA's report also counts: the few bytes of functions applied per element."""
    assert module.buffer_assignment is not None
    return sum(a.size for a in module.buffer_assignment.buffer_allocations if a.is_thread_local)


def test_a_module_of_a_dump_is_found_by_name(dump: Path) -> None:
    assert only(dump, name="jit_step").name == "jit_step"
    assert len(stalloc.analyze(dump).modules) >= 2
    with pytest.raises(hlo.HloError, match=r"has no module named 'jit_stop'.*jit_step"):
        stalloc.analyze(dump, name="jit_stop")


def test_a_lowered_program_is_told_to_compile() -> None:
    with pytest.raises(hlo.HloError, match=r"no schedule yet.*[Cc]ompile it first"):
        stalloc.analyze(jax.jit(lambda x: x + 1).lower(1.0))


TWO_CALLERS = """HloModule shared, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}
%double (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %twice = f32[8]{0} add(%p, %p)
}
ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %first = f32[8]{0} call(%x), to_apply=%double
  ROOT %second = f32[8]{0} call(%first), to_apply=%double
}
"""


def test_what_is_not_modelled_is_unknown_and_says_why() -> None:
    report = only(TWO_CALLERS, plan=True)
    assert (report.argument_bytes, report.output_bytes, report.alias_bytes) == (32, 32, 0)
    assert report.temp_bytes is report.peak_bytes is report.lower_bound_bytes is report.planned is None
    assert "'double' has two callers" in report.reason
    assert "unknown" in stalloc.analyze(TWO_CALLERS).to_text()


def test_an_emulation_that_xla_contradicts_is_not_trusted(dump: Path) -> None:
    module = hlo.open(dump, name="jit_step")
    assert module.buffer_assignment is not None
    for allocation in module.buffer_assignment.buffer_allocations:
        parameter_or_output = allocation.is_entry_computation_parameter or allocation.maybe_live_out
        if not (parameter_or_output or allocation.is_constant or allocation.is_thread_local):
            allocation.size += 4096
    truth, report = only(dump, name="jit_step"), analyze_module(module, plan=True)
    assert report.temp_bytes == truth.temp_bytes + 4096
    assert report.lower_bound_bytes is report.planned is None
    assert f"finds {truth.temp_bytes} bytes of temps where XLA says {report.temp_bytes}" in report.reason
    assert report.temp_peak_live_bytes == truth.temp_peak_live_bytes  # from XLA's trace

    del module.buffer_assignment.heap_simulator_traces[:]
    report = analyze_module(module)
    assert report.temp_peak_live_bytes is None
    assert report.live_at_peak == truth.live_at_peak
    assert "live at the peak is approximate" in report.reason


PROGRAMS = Path(os.environ.get("XLA_STALLOC_PROGRAMS") or Path(__file__).parents[3] / "shared" / "programs")


@pytest.mark.parametrize("name", sorted(p.name for p in PROGRAMS.glob("*.hlo.pb.xz")) or ["none"])
def test_programs_of_other_backends_have_a_report(name: str) -> None:
    path = PROGRAMS / name
    if not path.exists():
        pytest.skip("set XLA_STALLOC_PROGRAMS to a folder with compiled GPU and TPU programs (*.hlo.pb.xz)")
    report = only(path)
    assert report.figures == "xla"
    assert report.platform == {"gpu": "cuda"}.get(name[:3], name[:3])
    assert report.alias_bytes <= min(report.argument_bytes, report.output_bytes)
    assert report.peak_bytes == report.argument_bytes + report.output_bytes - report.alias_bytes + report.temp_bytes
    assert 0 < report.temp_peak_live_bytes <= report.temp_bytes
    temps = [b for b in report.live_at_peak if b.kind == "temp" and not b.inside]
    assert sum(b.bytes for b in temps) == report.temp_peak_live_bytes
    assert sum(b.bytes for b in report.live_at_peak if b.kind != "constant") <= report.peak_bytes
    assert temps[0].source.count(":") == 1
    assert report.lower_bound_bytes is not None or report.reason
