"""Times by the roofline, checked by hand; and how a device is recognized."""

from __future__ import annotations

import pytest

from xla_stalloc import hlo
from xla_stalloc.scheduling.cost import CARDS, Card, Costs, card_of, group_size, started

CARD = Card("round", flops=1e12, memory_bytes=1e12, link_bytes=1e11)

MODULE = hlo.open("""HloModule step, is_scheduled=true
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
product {
  p_x = f32[1024,2048]{1,0} parameter(0)
  p_y = f32[2048,512]{1,0} parameter(1)
  ROOT p_z = f32[1024,512]{1,0} dot(p_x, p_y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
piece {
  p_table = f32[1000000,256]{1,0} parameter(0)
  ROOT p_row = f32[1024,256]{1,0} slice(p_table), slice={[0:1024], [0:256]}
}
gather {
  p_shard = f32[1000000]{0} parameter(0)
  ROOT whole = f32[4000000]{0} all-gather(p_shard), replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=1, dimensions={0}, use_global_device_ids=true
}
ENTRY main {
  x = f32[1024,2048]{1,0} parameter(0)
  y = f32[2048,512]{1,0} parameter(1)
  table = f32[1000000,256]{1,0} parameter(2)
  shard = f32[1000000]{0} parameter(3)
  gathering = ((f32[1000000]{0}), f32[4000000]{0}) async-start(shard), calls=gather
  z = f32[1024,512]{1,0} fusion(x, y), kind=kLoop, calls=product
  gathered = f32[4000000]{0} async-done(gathering)
  row = f32[1024,256]{1,0} fusion(table), kind=kLoop, calls=piece
  small = f32[8]{0} constant({1,2,3,4,5,6,7,8})
  twice = f32[8]{0} add(small, small)
  reduced = f32[4000000]{0} all-reduce(gathered), replica_groups=[4,2]<=[8], channel_id=2, to_apply=sum, use_global_device_ids=true
  ROOT all = (f32[1024,512]{1,0}, f32[1024,256]{1,0}, f32[8]{0}, f32[4000000]{0}) tuple(z, row, twice, reduced)
}
""")  # noqa: E501
BY_NAME = {i.name: i for i in MODULE.entry.instructions}
COSTS = Costs(CARD)


@pytest.mark.parametrize(
    ("name", "nanoseconds"),
    [
        ("z", 2 * 1024 * 2048 * 512 // 1000),  # more arithmetic than bytes
        ("row", 2_000),  # it reads as much of its table as it writes
        ("twice", 2_000),  # launching a kernel takes that long
        ("x", 0),
        ("all", 0),
        ("gathering", 0),  # it occupies the link, not the card
        ("gathered", 0),
        ("reduced", 0),
    ],
)
def test_kernels(name, nanoseconds):
    assert COSTS.kernel(BY_NAME[name]) == pytest.approx(nanoseconds, rel=0.05)


@pytest.mark.parametrize(
    ("name", "group", "sent"), [("gathering", 4, 16_000_000 * 3 // 4), ("reduced", 2, 2 * 16_000_000 // 2)]
)
def test_collectives(name, group, sent):
    operation = started(BY_NAME[name])
    assert operation is not None and group_size(operation) == group
    assert COSTS.collective(BY_NAME[name]) == sent * 10 // 1000 + 15_000


def test_nothing_else_communicates():
    assert {i.name for i in MODULE.entry.instructions if COSTS.collective(i)} == {"gathering", "reduced"}


@pytest.mark.parametrize(
    ("kind", "card"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GeForce RTX 4090", "h200"),
    ],
)
def test_cards_are_recognized(kind, card):
    assert card_of(kind, default="h200") == card
    assert card in CARDS
