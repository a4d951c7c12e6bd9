"""What a program could do to need less memory: one idea per file, each with what it would bring."""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.report.model import Advice
from xla_stalloc.report.remedies import accumulation, checkpoint, donation, offload, order, replicated, resharding
from xla_stalloc.report.remedies.subject import Subject

__all__ = ["Subject", "everything"]


def everything(subject: Subject) -> Iterator[Advice]:
    """All advice for a program, in no order."""
    yield from order.advice(subject)
    yield from donation.advice(subject)
    yield from checkpoint.advice(subject)
    yield from offload.advice(subject)
    yield from accumulation.advice(subject)
    yield from replicated.advice(subject)
    yield from resharding.advice(subject)
