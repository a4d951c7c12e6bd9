"""Diffs of real compiles: what grew, which modules belong together, and Markdown that stays a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from xla_stalloc import hlo
from xla_stalloc.report.diff import Change, Diff, ModuleDiff, diff
from xla_stalloc.report.diff_text import markdown, sections
from xla_stalloc.report.sizes import parse_growth


def compiled(batch: int, width: int = 64) -> Any:
    def step(w, x):
        return w - jax.grad(lambda w: (jnp.tanh(jnp.tanh(x @ w) @ w.T) ** 2).sum())(w)

    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((width, width), (batch, width)))
    return jax.jit(step, donate_argnums=0).lower(*shapes).compile()


def other() -> Any:
    def other(x):
        return jnp.cumsum(jnp.sin(x))[::2].sum()

    return jax.jit(other).lower(jax.ShapeDtypeStruct((1000,), jnp.float32)).compile()


def dump(folder: Path, *programs: tuple[str, Any]) -> Path:
    """A dump folder with these programs, under these names of modules."""
    folder.mkdir()
    for number, (name, program) in enumerate(programs):
        proto = hlo.open(program).proto
        proto.name = name
        (folder / f"module_{number:04}.{name}.cpu_after_optimizations.hlo.pb").write_bytes(proto.SerializeToString())
    return folder


def test_the_same_program_has_not_changed() -> None:
    (module,) = diff(compiled(32), compiled(32)).modules
    assert module.same_program and module.by_source == module.by_kind == ()
    assert all(change.before == change.after for change in module.totals)
    assert not module.grew_beyond(parse_growth("0%"))


def test_a_larger_batch_grows_by_what_xla_says() -> None:
    small, large = compiled(32), compiled(128)
    found = diff(small, large)
    (module,) = found.modules
    totals = {change.name: change for change in module.totals}
    for name, sizes in (
        ("temp_bytes", "temp_size_in_bytes"),
        ("argument_bytes", "argument_size_in_bytes"),
        ("output_bytes", "output_size_in_bytes"),
    ):
        before, after = (getattr(program.memory_analysis(), sizes) for program in (small, large))
        assert (totals[name].before, totals[name].after) == (before, after)
    assert not module.same_program
    assert any(Path(__file__).name in change.name for change in module.by_source)
    # Both groupings are of the same buffers.
    assert sum(c.grown for c in module.by_source) == sum(c.grown for c in module.by_kind) > 0
    assert [c.grown for c in module.by_source] == sorted((c.grown for c in module.by_source), reverse=True)
    assert found.grew_beyond(parse_growth("2%")) == (module.name,)
    assert found.grew_beyond(parse_growth(f"{module.peak.grown}")) == ()
    assert found.grew_beyond(parse_growth(f"{module.peak.grown - 1}")) == (module.name,)
    (back,) = diff(large, small).modules
    assert back.peak.grown == -module.peak.grown and not back.grew_beyond(parse_growth("0%"))


def test_modules_of_dumps_are_matched(tmp_path: Path) -> None:
    before = dump(tmp_path / "a", ("jit_step", compiled(32)), ("jit_step", compiled(64)), ("jit_old", other()))
    after = dump(
        tmp_path / "b",
        ("jit_step", compiled(128)),
        ("jit_step", compiled(32)),
        ("jit_new", other()),
        ("jit_more", compiled(8, 16)),
    )
    found = diff(before, after)
    by_name = {(module.name, module.same_program): module for module in found.modules}
    assert set(by_name) == {("jit_step", True), ("jit_step", False), ("jit_new", True)}
    assert by_name["jit_step", True].peak.grown == 0
    assert found.modules[0].peak.grown > 0  # 64 became 128
    assert (found.added, found.removed) == (("jit_more",), ())
    assert diff(after, before).removed == ("jit_more",)
    one = diff(before, after, name="jit_step")
    assert {module.name for module in one.modules} == {"jit_step"}


def test_what_is_not_known_is_not_allowed() -> None:
    totals = (Change("peak_bytes", None, 5), Change("temp_bytes", None, 5))
    module = ModuleDiff("m", False, totals, (), (), "why")
    assert module.grew_beyond(parse_growth("100%")) and module.peak.grown == 0
    text = markdown(Diff((module,), (), ()), 5)
    assert "not known" in text and "why" in text


def test_markdown_is_made_of_whole_tables() -> None:
    change = Change("a|b`c", 0, 3_000_000)
    other_changes = tuple(Change(f"f.py:{number}", 100 + number, 100) for number in range(5))
    module = ModuleDiff(
        "jit_<step>", False, (Change("peak_bytes", 10**6, 4 * 10**6), change), (change, *other_changes), (change,)
    )
    text = markdown(Diff((module,), ("jit_new",), ("jit_old",)), 2, "grew")
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if line.startswith("|---"):
            rows = [lines[start - 1], line]
            rows += [row for row in lines[start + 1 :][: lines[start + 1 :].index("")]]
            assert len({row.replace("\\|", "").count("|") for row in rows}) == 1, rows
    assert "| +3.0 MB | +300.0 |" in text and "**grew**" in text and "jit_&lt;step>" in text
    assert "and 4 smaller changes, -6 B together" in text
    assert "- only in the second: `jit_new`" in lines and "- only in the first: `jit_old`" in lines


def test_json_and_sections_hold_the_same() -> None:
    found = diff(compiled(32), compiled(64))
    told = json.loads(json.dumps(found.to_dict()))
    assert told["schema"] == 1 and told["modules"][0]["totals"][0]["name"] == "peak_bytes"
    first, *_ = sections(found, 3)
    assert first.rows[0][0] == "peak" and first.rows[0][3].startswith("+")


def test_no_program() -> None:
    with pytest.raises(hlo.HloError):
        diff(b"nothing", compiled(32))
