"""What may wait in the host's memory while nothing touches it; see `report.offload` for how it is chosen."""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.plan.explain import size
from xla_stalloc.report.model import Advice
from xla_stalloc.report.offload import offload
from xla_stalloc.report.remedies.subject import Subject
from xla_stalloc.scheduling.cost import CARDS

HOST_BYTES_PER_SECOND = 25e9
"""Of PCIe 4.0 with 16 lanes, as programs reach it; `xla-stalloc offload` takes other rates."""

_CARD = "h100"


def advice(subject: Subject) -> Iterator[Advice]:
    """All that is worth moving together; nothing for a CPU, whose memory is the host's."""
    if subject.module.platform == "cpu" or subject.peak_bytes is None:
        return
    found = offload(subject.module, CARDS[_CARD], HOST_BYTES_PER_SECOND)
    if not found.chosen:
        return
    saved = found.peak_bytes - found.estimated_peak_bytes
    count = sum(candidate.bytes for candidate in found.chosen)
    seconds = sum(candidate.transfer_seconds for candidate in found.chosen)
    slack = min(candidate.slack_seconds for candidate in found.chosen)
    largest = max(found.chosen, key=lambda candidate: candidate.bytes)
    new_peak = subject.peak_bytes - saved
    outcome = f"peak {size(new_peak)}" if saved > 0 else "this would not move the peak"
    yield Advice(
        kind="offload",
        text=f"{len(found.chosen)} buffers of {size(count)} can wait in host memory ({largest.name} is the largest): "
        f"{seconds * 1e3:.1f} ms of transfers at {HOST_BYTES_PER_SECOND / 1e9:.0f} GB/s, hidden with at least "
        f"{slack * 1e3:.1f} ms to spare on an {_CARD.upper()}: {outcome}. xla-stalloc offload writes the code",
        bytes=count,
        source=largest.source,
        new_peak_bytes=new_peak,
        moves_peak=saved > 0,
        how="live bytes",
    )
