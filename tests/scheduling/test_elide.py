"""Copies of donated arguments: which ones an order can replace, and that nothing is wrong without them."""

from __future__ import annotations

import pytest

from xla_stalloc import hlo
from xla_stalloc.hlo.rewrite import serialize, view
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.verify import verify
from xla_stalloc.scheduling.elide import avoidable_copies, edit_for

PROGRAM = """HloModule step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }
mixed {
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  turned = f32[64] reverse(q), dimensions={0}
  piece = f32[1] slice(turned), slice={[0:1]}
  start = s32[] constant(0)
  ROOT u = f32[64] dynamic-update-slice(p, piece, start)
}
ENTRY main {
  x = f32[64] parameter(0)
  part = f32[1] parameter(1)
  zero = s32[] constant(0)
  copied = f32[64] copy(x)
  BODY
}
"""
READ = "read = f32[64] reverse(copied), dimensions={0}"
UPDATE = "updated = f32[64] dynamic-update-slice(x, part, zero)"
RESULTS = "ROOT all = (f32[64], f32[64]) tuple(updated, read)"


def opened(*body: str, header: str = "") -> hlo.Module:
    text = PROGRAM.replace("BODY", "\n  ".join(body))
    return hlo.open(text if not header else text.replace(text.splitlines()[0], header))


def test_a_copy_that_is_only_read_before_the_update_goes():
    module = opened(READ, UPDATE, RESULTS)
    (found,) = avoidable_copies(of(module))
    assert (found.copy.name, found.argument.name) == ("copied", "x")
    assert [i.name for i in found.readers] == ["read"] and [i.name for i in found.writers] == ["updated"]
    edits = {module.entry.id: edit_for([found])}
    edited = view(module, edits)
    assert [i.name for i in edited.entry.sequence] == ["x", "part", "zero", "read", "updated", "all"]
    updated = next(i for i in edited.entry.instructions if i.name == "updated")
    assert [i.name for i in updated.control_predecessors] == ["read"]
    verify(module, serialize(module, edits, {}))


def test_the_update_moves_behind_readers_that_stood_behind_it():
    module = opened(UPDATE, READ, RESULTS)
    (found,) = avoidable_copies(of(module))
    edited = view(module, {module.entry.id: edit_for([found])})
    assert [i.name for i in edited.entry.sequence][-3:] == ["read", "updated", "all"]


NEEDED = {
    "a reader depends on the update": opened(UPDATE, "read = f32[64] add(copied, updated)", RESULTS),
    "the update reads the copy at other places than it writes": opened(
        "updated = f32[64] fusion(x, copied), kind=kLoop, calls=mixed", "read = f32[64] sine(x)", RESULTS
    ),
    "the copy is a result": opened(UPDATE, "ROOT all = (f32[64], f32[64]) tuple(updated, copied)"),
    "the argument is not donated": opened(READ, UPDATE, RESULTS, header="HloModule step, is_scheduled=true"),
}


@pytest.mark.parametrize("case", NEEDED)
def test_a_copy_that_is_needed_stays(case):
    assert avoidable_copies(of(NEEDED[case])) == []
