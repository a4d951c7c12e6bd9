"""What may wait in the host's memory: what nothing touches for longer than it takes to move it away and back.

The idea is that of vDNN (Rhu et al., 2016, arXiv:1602.08124) and `jax.checkpoint_policies`, looked for in the schedule
that XLA chose. Times are those of the cost model, and the peak afterwards is an estimate: only a compile with the
offload in the program tells.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from xla_stalloc.hlo import Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import Buffer, Kind, Lifetimes, of
from xla_stalloc.lifetimes.program import uses
from xla_stalloc.report.sources import source_of
from xla_stalloc.scheduling.cost import Card, Costs

_CALLERS = frozenset(("call", "conditional", "while"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A buffer that may be away for a while.

    Attributes:
      name: of the instruction that writes it, or of the argument.
      kind: ``residual``, computed by the program; ``state``, an argument.
      bytes: without padding.
      shape: as in HLO text.
      source: ``file:line`` in the user's program; of an argument, its name.
      idle_seconds: between the touches that are furthest apart; for state, from the last one to the next step's first.
      transfer_seconds: to the host and back.
      away: half-open ranges of times of the schedule in which its memory is free.
    """

    name: str
    kind: str
    bytes: int
    shape: str
    source: str
    idle_seconds: float
    transfer_seconds: float
    away: tuple[tuple[int, int], ...]

    @property
    def slack_seconds(self) -> float:
        """By how much the transfers could be slower and nothing would wait."""
        return self.idle_seconds - self.transfer_seconds


@dataclass(frozen=True, slots=True)
class OffloadReport:
    """What offloading could bring.

    Attributes:
      seconds: of the program, by the cost model.
      peak_bytes: arguments and temps that are live at once, before.
      estimated_peak_bytes: the same with the chosen candidates away.
      chosen: candidates that lower the peak together, in the order in which they were chosen.
      others: candidates that need not move, largest first.
    """

    seconds: float
    peak_bytes: int
    estimated_peak_bytes: int
    chosen: tuple[Candidate, ...]
    others: tuple[Candidate, ...]


def offload(module: Module, card: Card, host_bytes_per_second: float, smallest_bytes: int = 1 << 20) -> OffloadReport:
    """Looks for what may be away, and chooses what lowers the peak.

    At each step the largest candidate that is idle at the peak is chosen, as long as all transfers together take no
    longer than the program.

    Args:
      module: compiled.
      card: what the program runs on.
      host_bytes_per_second: between the device and the host, each way.
      smallest_bytes: what is not worth a transfer of its own.

    Raises:
      UnsupportedModuleError: the module has a form whose memory is not modelled.
      ValueError: the rate is not positive.
    """
    if not host_bytes_per_second > 0:
        raise ValueError(f"a host link of {host_bytes_per_second} bytes per second: give a positive rate")
    lifetimes = of(without_barriers(module))
    costs = Costs(card)
    steps = [0 if i.opcode in _CALLERS else costs.kernel(i) + costs.collective(i) for i in lifetimes.schedule]
    clock = [0.0, *(time / 1e9 for time in accumulate(steps))]  # seconds at which each time of the schedule begins
    found = _candidates(lifetimes, clock, host_bytes_per_second, smallest_bytes)
    waiting = sorted((c for c in found if c.slack_seconds >= 0 and c.away), key=lambda c: (-c.bytes, c.name))
    arguments = sum(buffer.bytes for buffer in lifetimes.buffers if _is_argument(buffer) and not buffer.memory_space)
    live = [arguments + bytes for bytes in lifetimes.live_bytes()]
    before = max(live)
    busy, chosen = 0.0, list[Candidate]()
    while True:
        peak = live.index(max(live))
        fitting = (c for c in waiting if _is_away(c, peak) and busy + c.transfer_seconds / 2 <= clock[-1])
        best = next(fitting, None)
        if best is None:
            break
        waiting.remove(best)
        chosen.append(best)
        busy += best.transfer_seconds / 2  # both ways at once
        for begin, end in best.away:
            for time in range(begin, end):
                live[time] -= best.bytes
    return OffloadReport(clock[-1], before, max(live), tuple(chosen), tuple(waiting))


def _is_argument(buffer: Buffer) -> bool:
    return buffer.kind in (Kind.ARGUMENT, Kind.DONATED)


def _is_away(candidate: Candidate, time: int) -> bool:
    return any(begin <= time < end for begin, end in candidate.away)


def _candidates(lifetimes: Lifetimes, clock: Sequence[float], rate: float, smallest: int) -> Iterator[Candidate]:
    entry = lifetimes.module.entry
    time = {instruction.id: number for number, instruction in enumerate(lifetimes.schedule)}
    in_heap = {value.id for value in lifetimes.assignment().offsets}
    for buffer in lifetimes.buffers:
        in_loop = any(value.instruction.computation is not entry for value in buffer.values)  # touched in each turn
        if buffer.bytes < smallest or buffer.memory_space or in_loop:
            continue
        one_way = buffer.bytes / rate
        touched = _touches(buffer, time)
        if _is_argument(buffer) and touched:
            idle = clock[-1] - clock[min(touched[-1] + 1, len(clock) - 1)] + clock[touched[0]]
            away = [(0, _before(clock, touched[0], one_way)), (_after(clock, touched[-1], one_way), len(clock))]
            yield _candidate(buffer, "state", idle, one_way, away)
        elif buffer.kind is Kind.TEMP and buffer.values[0].id in in_heap and len(touched) > 1:
            last, following = max(pairwise(touched), key=lambda pair: clock[pair[1]] - clock[pair[0] + 1])
            idle = clock[following] - clock[last + 1]
            away = [(_after(clock, last, one_way), _before(clock, following, one_way))]
            yield _candidate(buffer, "residual", idle, one_way, away)


def _touches(buffer: Buffer, time: dict[int, int]) -> list[int]:
    """When instructions write or read a buffer, in order."""
    written = {v.instruction.id for v in buffer.values if v.instruction.opcode != "parameter"}
    read = {user.id for value in buffer.values for user, _, _ in uses(value)}
    return sorted(time[id] for id in written | read if id in time)


def _after(clock: Sequence[float], last: int, seconds: float) -> int:
    """The first time of the schedule that begins when what was touched last has gone."""
    return bisect_left(clock, clock[last + 1] + seconds)


def _before(clock: Sequence[float], following: int, seconds: float) -> int:
    """The time of the schedule in which the transfer back has to begin."""
    return max(bisect_right(clock, clock[following] - seconds) - 1, 0)


def _candidate(buffer: Buffer, kind: str, idle: float, one_way: float, away: Sequence[tuple[int, int]]) -> Candidate:
    value = buffer.values[0]
    return Candidate(
        name=value.instruction.name,
        kind=kind,
        bytes=buffer.bytes,
        shape=str(value.shape),
        source=source_of(value.instruction, value.index),
        idle_seconds=idle,
        transfer_seconds=2 * one_way,
        away=tuple((begin, end) for begin, end in away if begin < end),
    )
