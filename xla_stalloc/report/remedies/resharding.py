"""Tensors gathered whole on every device only to be cut again: a change of sharding that XLA found no way for.

See "Involuntary full rematerialization" in XLA's SPMD partitioner (xla/service/spmd/spmd_partitioner.cc).
"""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.hlo import Instruction
from xla_stalloc.plan.explain import size
from xla_stalloc.report.model import Advice
from xla_stalloc.report.remedies.subject import Subject
from xla_stalloc.report.sources import shortened, source_of

_NAMES = frozenset(("bitcast", "copy", "reshape", "transpose", "get-tuple-element", "convert"))
_CUTS = frozenset(("dynamic-slice",))


def advice(subject: Subject) -> Iterator[Advice]:
    """Each gathered tensor that is only cut afterwards."""
    for instruction in subject.lifetimes.schedule:
        whole = _gathered(instruction)
        if whole is None or not _only_cut(whole):
            continue
        values = subject.lifetimes.dataflow.at(whole) or ()
        away = []
        for value in values:
            begin, end = subject.lifetimes.live_range(value)
            away.append((begin, min(end + 1, len(subject.live)), value.bytes))
        count = max((value.bytes for value in values), default=whole.shape.byte_size)
        new_peak = subject.peak_without(away) if values else None
        moves = subject.moves(new_peak)
        outcome = f"without it, peak {size(new_peak or 0)}" if moves else "without it the peak would not move"
        source = source_of(whole)
        yield Advice(
            kind="resharding",
            text=f"{whole.name}, {size(count)}, is gathered whole on every device and only cut again: its sharding "
            f"changes at {shortened(source) or 'an unknown line'} in a way that needs all of it; give both sides the "
            f"same sharding, or one that moves a single axis (with_sharding_constraint): {outcome}",
            bytes=count,
            source=source,
            new_peak_bytes=new_peak,
            moves_peak=moves,
            how="live bytes",
        )


def _gathered(instruction: Instruction) -> Instruction | None:
    return instruction if instruction.opcode in ("all-gather", "all-gather-done") else None


def _only_cut(instruction: Instruction) -> bool:
    """Whether all that happens to a value is that parts of it are taken."""
    users = instruction.users
    return bool(users) and all(_cuts(user, instruction) for user in users)


def _cuts(user: Instruction, whole: Instruction) -> bool:
    if user.opcode in _CUTS:
        return user.operands[0] is whole
    if user.opcode in _NAMES:
        return _only_cut(user)
    if user.opcode != "fusion":
        return False
    inside = user.called[0].parameters
    return all(_only_cut(inside[n]) for n, operand in enumerate(user.operands) if operand is whole)
