"""Gradient accumulation: half of the batch at a time, against a sum of gradients that is there all the time."""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.plan.explain import size
from xla_stalloc.report.kinds import Content
from xla_stalloc.report.model import Advice
from xla_stalloc.report.phases import Phase
from xla_stalloc.report.remedies.subject import Subject

_SCALES = (Content.RESIDUAL, Content.LOGITS, Content.TEMP, Content.COLLECTIVE, Content.COPY)
_SMALLEST = 0.01  # of the peak


def advice(subject: Subject) -> Iterator[Advice]:
    """Two micro-batches, if the program computes gradients of a batch that can be halved.

    What is live at the peak and made of the batch halves; the gradients that are not live there come on top.
    """
    arguments = subject.arguments
    batches = {
        value.shape.dimensions[0]
        for value in arguments
        if value.shape.dimensions and subject.known.kind(value) is Content.INPUT
    }
    batch = max(batches, default=0)
    is_training = any(subject.known.phase(i) is Phase.BACKWARD for i in subject.lifetimes.schedule)
    if not is_training or batch < 2 or batch % 2 or subject.peak_bytes is None:
        return
    live = subject.assignment.live_at_peak
    roles = [(value, subject.known.role(value)) for value in live]
    of_batch = sum(v.bytes for v, role in roles if role in _SCALES and _is_of_batch(subject, v.shape.dimensions, batch))
    gradients = sum(v.bytes for v, role in roles if role is Content.GRADIENT)
    parameters = sum(value.bytes for value in arguments if subject.known.kind(value) is Content.PARAMETER)
    added = max(parameters - gradients, 0)
    new_peak = subject.peak_bytes - of_batch // 2 + added
    moves = new_peak < subject.peak_bytes
    if of_batch < _SMALLEST * subject.peak_bytes:
        return
    outcome = f"peak {size(new_peak)}" if moves else "this would not move the peak"
    yield Advice(
        kind="accumulation",
        text=f"two micro-batches of {batch // 2} with accumulated gradients: {size(of_batch)} at the peak are made of "
        f"the batch and halve, {size(added)} of gradients come on top: {outcome}",
        bytes=of_batch // 2,
        new_peak_bytes=new_peak,
        moves_peak=moves,
        how="live bytes",
    )


def _is_of_batch(subject: Subject, dimensions: tuple[int, ...], batch: int) -> bool:
    """Whether a value has a row for each example: the batch is an axis, or merged with others into one."""
    return any(d % batch == 0 for d in dimensions) and tuple(sorted(dimensions)) not in subject.known.parameter_shapes
