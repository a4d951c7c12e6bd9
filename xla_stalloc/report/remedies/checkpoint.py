"""Residuals that `jax.checkpoint` would compute again, layer by layer: bytes against floating-point operations.

The idea is that of Chen et al., 2016 (arXiv:1604.06174). What a layer keeps is gone from its last reader in the forward
pass until the layer's backward pass begins, where all of it is there again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from xla_stalloc.lifetimes import Value
from xla_stalloc.lifetimes.program import uses
from xla_stalloc.plan.explain import size
from xla_stalloc.report.kinds import Content
from xla_stalloc.report.model import Advice
from xla_stalloc.report.phases import Phase
from xla_stalloc.report.remedies.subject import Away, Subject
from xla_stalloc.report.sources import source_of
from xla_stalloc.scheduling.cost import CARDS, Costs

_SMALLEST = 0.01  # of the peak: what a layer keeps is not worth a line below this


@dataclass(frozen=True)
class _Kept:
    """A residual: until when the forward pass reads it, and from when on the backward pass does."""

    value: Value
    last: int
    again: int


def advice(subject: Subject) -> Iterator[Advice]:
    """Each layer that keeps much, then all of them together; with what does not move the peak said so."""
    if not subject.peak_bytes:
        return
    layers = _layers(subject)
    worth = {
        layer: kept
        for layer, kept in layers.items()
        if sum(k.value.bytes for k in kept) >= _SMALLEST * subject.peak_bytes
    }
    flops = _forward_flops(subject)
    for layer, kept in worth.items():
        yield _advice(subject, f"layer {layer}", kept, _away(kept), flops[layer])
    if len(worth) > 1:
        together = [away for kept in worth.values() for away in _away(kept)]
        everything = [one for kept in worth.values() for one in kept]
        named = f"all {len(worth)} layers, each by itself"
        yield _advice(subject, named, everything, together, sum(flops[layer] for layer in worth))


def _layers(subject: Subject) -> dict[str, list[_Kept]]:
    time = {instruction.id: number for number, instruction in enumerate(subject.lifetimes.schedule)}
    found: defaultdict[str, list[_Kept]] = defaultdict(list)
    for buffer, value in subject.temps:
        layer = subject.known.layer(value.instruction)
        if not layer or subject.known.of_buffer(buffer) is not Content.RESIDUAL or value.instruction.id not in time:
            continue
        touched = [(time[user.id], subject.known.phase(user)) for v in buffer.values for user, _, _ in uses(v)]
        again = min((at for at, phase in touched if phase is not Phase.FORWARD), default=0)
        last = max((at for at, phase in touched if phase is Phase.FORWARD), default=time[value.instruction.id])
        if again > last:
            found[layer].append(_Kept(value, last, again))
    return found


def _away(kept: list[_Kept]) -> list[Away]:
    begin_of_backward = min(one.again for one in kept)
    return [(one.last + 1, begin_of_backward, one.value.bytes) for one in kept]


def _forward_flops(subject: Subject) -> defaultdict[str, int]:
    costs = Costs(next(iter(CARDS.values())))  # only counted, so any card will do
    found: defaultdict[str, int] = defaultdict(int)
    for instruction in subject.lifetimes.schedule:
        if subject.known.phase(instruction) is Phase.FORWARD:
            found[subject.known.layer(instruction)] += costs.flops(instruction)
    return found


def _advice(subject: Subject, what: str, kept: list[_Kept], away: list[Away], flops: int) -> Advice:
    new_peak = subject.peak_without(away)
    moves = subject.moves(new_peak)
    count = sum(one.value.bytes for one in kept)
    outcome = f"peak {size(new_peak or 0)}" if moves else "this would not move the peak"
    largest = max(kept, key=lambda one: one.value.bytes)
    return Advice(
        kind="checkpoint",
        text=f"jax.checkpoint on {what}: {size(count)} of residuals would be computed again, with "
        f"{flops / 1e9:.3g} GFLOP of matrix products: {outcome}",
        bytes=count,
        source=source_of(largest.value.instruction, largest.value.index),
        new_peak_bytes=new_peak,
        moves_peak=moves,
        how="live bytes",
    )
