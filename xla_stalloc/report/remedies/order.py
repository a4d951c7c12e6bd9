"""Another order of the instructions: what planning found."""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.plan.explain import size, why_not_lower
from xla_stalloc.report.model import Advice
from xla_stalloc.report.remedies.subject import Subject


def advice(subject: Subject) -> Iterator[Advice]:
    """A better order, if planning was asked for and found one."""
    record = subject.planned
    if record is None or subject.peak_bytes is None or record.saved_bytes <= 0:
        return
    new_peak = subject.peak_bytes - record.saved_bytes
    yield Advice(
        kind="better-order",
        text=f"another order of the same instructions needs {size(record.temp_bytes)} of temps instead of "
        f"{size(record.stock_temp_bytes)}: peak {size(new_peak)}. Use stalloc.jit, or XLA_STALLOC=schedule in the "
        f"environment ({why_not_lower(record)})",
        bytes=record.saved_bytes,
        new_peak_bytes=new_peak,
        moves_peak=True,
        how="planned",
    )
