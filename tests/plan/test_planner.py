"""What the record of a plan says."""

from __future__ import annotations

import pytest

from xla_stalloc import hlo
from xla_stalloc.plan import planner
from xla_stalloc.plan.options import PlanOptions

MODULE = hlo.open("""HloModule step, is_scheduled=true
ENTRY main {
  x = f32[64] parameter(0)
  a = f32[64] sine(x)
  b = f32[64] reverse(a), dimensions={0}
  ROOT c = f32[64] negate(b)
}
""")


@pytest.mark.parametrize(("bound", "recorded"), [(0, 0), (1, 1), (1 << 40, 0)])
def test_a_bound_that_was_beaten_is_unknown(monkeypatch, bound, recorded):
    monkeypatch.setattr(planner, "module_lower_bound", lambda *_: bound)
    record = planner.plan_module(MODULE.serialized, PlanOptions()).record
    assert record.temp_bytes > 0 and record.lower_bound_bytes == recorded
