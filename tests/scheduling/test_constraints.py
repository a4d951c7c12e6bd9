"""What an order must respect besides operands."""

from __future__ import annotations

import pytest

from xla_stalloc import hlo
from xla_stalloc.lifetimes import UnsupportedModuleError, of
from xla_stalloc.scheduling.constraints import async_windows, pinned_order
from xla_stalloc.scheduling.extract import extract

EFFECTS = hlo.open("""HloModule effects, is_scheduled=true
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
ENTRY main {
  x = f32[64] parameter(0)
  first = f32[64] all-reduce(x), replica_groups={}, channel_id=1, to_apply=add
  pure = f32[64] custom-call(x), custom_call_target="pure"
  print = f32[64] custom-call(x), custom_call_target="print", custom_call_has_side_effect=true
  second = f32[64] all-reduce(x), replica_groups={}, channel_id=2, to_apply=add
  write = f32[64] custom-call(x), custom_call_target="write", custom_call_has_side_effect=true
  ROOT all = (f32[64], f32[64], f32[64], f32[64], f32[64]) tuple(first, pure, print, second, write)
}
""")

TRANSFER = hlo.open("""HloModule transfer, is_scheduled=true
ENTRY main {
  x = f32[64] parameter(0)
  before = f32[64] sine(x)
  start = (f32[64], f32[64], u32[]) copy-start(x)
  hiding = f32[64] cosine(x)
  done = f32[64] copy-done(start)
  after = f32[64] negate(x)
  ROOT all = (f32[64], f32[64], f32[64], f32[64]) tuple(before, hiding, done, after)
}
""")

OVERWRITTEN = """HloModule overwritten, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY main {
  x = f32[64] parameter(0)
  part = f32[1] parameter(1)
  zero = s32[] constant(0)
  FIRST
  SECOND
  ROOT all = (f32[64], f32[64]) tuple(updated, read)
}
"""
READ = "read = f32[64] reverse(x), dimensions={0}"
UPDATE = "updated = f32[64] dynamic-update-slice(x, part, zero)"


def names(edges):
    return [(before.name, after.name) for before, after in edges]


def test_side_effects_keep_their_order_and_collectives_if_asked():
    sequence = EFFECTS.entry.sequence
    assert names(pinned_order(sequence, collectives=False)) == [("print", "write")]
    pinned = [("first", "print"), ("print", "second"), ("second", "write")]
    assert names(pinned_order(sequence, collectives=True)) == pinned


def test_what_hides_a_transfer_stays_between_its_start_and_its_end():
    assert names(async_windows(TRANSFER.entry.sequence)) == [("start", "hiding"), ("hiding", "done")]


def test_the_graph_has_these_edges():
    region = extract(TRANSFER, of(TRANSFER), TRANSFER.entry)
    node = {TRANSFER.instruction(id).name: n for n, ids in enumerate(region.members) for id in ids}
    before = {name: set(region.graph.predecessors[n]) for name, n in node.items()}
    assert node["start"] in before["hiding"] and node["hiding"] in before["done"]
    assert node["start"] not in before["before"] | before["after"]


def test_a_value_is_read_before_it_is_overwritten():
    module = hlo.open(OVERWRITTEN.replace("FIRST", READ).replace("SECOND", UPDATE))
    region = extract(module, of(module), module.entry)
    node = {module.instruction(id).name: n for n, ids in enumerate(region.members) for id in ids}
    assert node["read"] in region.graph.predecessors[node["updated"]]


def test_a_schedule_that_overwrites_too_early_is_left_alone():
    module = hlo.open(OVERWRITTEN.replace("FIRST", UPDATE).replace("SECOND", READ))
    with pytest.raises(UnsupportedModuleError, match="'updated' overwrites 'x' before its last read"):
        extract(module, of(module), module.entry)
