"""The JSON form of records: what one version writes, another reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xla_stalloc.plan.record import PlanRecord

RECORD = PlanRecord(
    module="jit_step", stock_temp_bytes=100, temp_bytes=60, levers=("temporal",), reason='"{why}"', plan_seconds=0.5
)


@given(
    st.builds(
        PlanRecord,
        module=st.text(),
        reason=st.text(),
        temp_bytes=st.integers(0, 1 << 62),
        levers=st.lists(st.text()).map(tuple),
        plan_seconds=st.floats(0, 1e6),
        stock_exact=st.booleans(),
    )
)
def test_comes_back_equal(record):
    assert PlanRecord.from_json(record.to_json()) == record


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults():
    raw = json.loads(RECORD.to_json()) | {"later": {"than": "now"}, "schema": 7}
    del raw["plan_seconds"]
    assert PlanRecord.from_json(json.dumps(raw)) == RECORD.replace(plan_seconds=0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a JSON object"),
        ("[]", "found a list"),
        ("{}", "'module' is missing"),
        ('{"module": 3}', "'module' must be str"),
        ('{"module": "m", "temp_bytes": true}', "'temp_bytes' must be int"),
        ('{"module": "m", "levers": "temporal"}', "'levers' must be a list"),
    ],
)
def test_what_is_no_record_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        PlanRecord.from_json(text)


def test_reasons_add_up_and_savings_subtract():
    assert RECORD.saved_bytes == 40
    assert PlanRecord(module="m").because("one").because("two").reason == "one; two"
