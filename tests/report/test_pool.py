"""Pool fit: a public case of 704 GPUs, every allocator, and ranges that the arithmetic itself confirms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xla_stalloc.report.pool import ALLOCATORS, Card, Fit, Program, fit

GIB = 2**30
CARD = Card(round(184.29 * GIB), "cuda_async", outside_bytes=round(28.6 * GIB))
ARENA = Program("train_step", round(133.6 * GIB), scales=True)
RESIDENT = round((143.84 - 125.67) * GIB)  # the pool's mark when it failed, less the block that was asked for


def public(fraction: float, factor: float) -> Fit:
    """marin-community/marin PR#8490 and PR#8507: figures as posted there."""
    return fit(CARD, [ARENA], RESIDENT, fraction=fraction, factor=factor)


def test_what_worked_fits() -> None:
    found = public(0.75, 85)
    assert found.verdict == "fits" and found.reasons == ()
    assert found.limit_bytes == pytest.approx(138.22 * GIB, rel=1e-3)
    assert found.block_bytes == pytest.approx(113.6 * GIB, rel=1e-2)


def test_what_killed_2_of_176_tasks_is_marginal() -> None:
    found = public(0.75, 88)
    assert found.verdict == "marginal"
    assert 0 < found.pool_margin_bytes < 0.02 * found.limit_bytes
    assert found.reasons[0].startswith("pool: ") and "margin" in found.reasons[0]


def test_what_aborted_is_refused_for_the_pool() -> None:
    found = public(0.75, 95)
    assert found.verdict == "refused"
    assert [reason.partition(":")[0] for reason in found.reasons] == ["pool"]
    assert found.factors is not None and 88 < found.factors[1] < 95


def test_a_larger_pool_is_refused_for_what_lies_outside() -> None:
    found = public(0.83, 95)
    assert found.verdict == "refused"
    (reason,) = found.reasons
    assert reason.startswith("non-pool bytes: ") and "28.60 GiB" in reason and "31.33 GiB" in reason
    assert found.pool_margin_bytes > 0 > found.card_margin_bytes
    assert found.fractions is None  # the block of 95 % fits into no pool that leaves the libraries their bytes
    assert found.factors is None


def test_the_mark_that_was_fine_above_the_threshold() -> None:
    found = fit(CARD, [Program("p", round(140.23 * GIB) - RESIDENT)], RESIDENT, fraction=0.75, factor=95)
    assert found.verdict == "marginal"
    hard = Card(CARD.bytes, "bfc", CARD.outside_bytes)
    assert (
        fit(hard, [Program("p", round(140.23 * GIB) - RESIDENT)], RESIDENT, fraction=0.75, factor=95).verdict
        == "refused"
    )


def test_without_a_pool_the_card_is_the_limit() -> None:
    card = Card(80 * GIB, "platform", outside_bytes=10 * GIB)
    found = fit(card, [Program("a", 20 * GIB), Program("b", 30 * GIB)], 39 * GIB, fraction=0.5, factor=95)
    assert found.limit_bytes == 70 * GIB and found.pool_margin_bytes == GIB and found.verdict == "marginal"
    assert found.block_of == "b" and found.fraction is None and found.fractions is None


sizes = st.integers(0, 200 * GIB)


@given(
    allocator=st.sampled_from(ALLOCATORS),
    card=st.integers(GIB, 200 * GIB),
    outside=sizes,
    reserve=st.none() | sizes,
    resident=sizes,
    blocks=st.lists(st.tuples(sizes, st.booleans()), min_size=1, max_size=4),
    fraction=st.floats(0.01, 1),
    factor=st.floats(1, 120),
)
def test_ranges_and_reasons_agree_with_verdicts(
    allocator, card, outside, reserve, resident, blocks, fraction, factor
) -> None:
    programs = [Program(str(number), *block) for number, block in enumerate(blocks)]
    held = Card(card, allocator, outside, reserve)
    found = fit(held, programs, resident, fraction=fraction, factor=factor)
    assert (found.verdict == "fits") == (not found.reasons)
    if found.pool_margin_bytes >= 0 and found.card_margin_bytes >= 0:
        assert found.verdict != "refused"
    if found.fractions is not None:
        low, high = found.fractions
        for inside in {max(low, 0.001), (low + high) / 2, min(high, 1.0)}:
            if 0 < inside <= 1:
                again = fit(held, programs, resident, fraction=inside, factor=factor)
                assert min(again.pool_margin_bytes, again.card_margin_bytes) >= -1  # a byte of rounding
    if found.factors is not None and found.factors[1] > 0:
        again = fit(held, programs, resident, fraction=fraction, factor=found.factors[1])
        assert min(again.pool_margin_bytes, again.card_margin_bytes) >= -1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"programs": []}, "no program"),
        ({"fraction": 0.0}, "fraction is 0"),
        ({"fraction": 75.0}, "fraction is 75"),
        ({"factor": 0.0}, "factor is 0"),
        ({"resident_bytes": -1}, "below 0"),
        ({"card": Card(0, "bfc")}, "card of 0"),
    ],
)
def test_nonsense_is_refused(change, told) -> None:
    given_ = {"card": CARD, "programs": [ARENA], "resident_bytes": 0, "fraction": 0.75, "factor": 95.0, **change}
    with pytest.raises(ValueError, match=told):
        fit(**given_)
