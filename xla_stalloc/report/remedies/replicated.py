"""Arguments of which every device of a group holds all."""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.plan.explain import size
from xla_stalloc.report.kinds import Content
from xla_stalloc.report.model import Advice
from xla_stalloc.report.remedies.subject import Subject

_SHARED = (Content.PARAMETER, Content.OPTIMIZER_STATE)
_SMALLEST = 0.01  # of the arguments


def advice(subject: Subject) -> Iterator[Advice]:
    """Parameters and optimizer state that the compiler was told to replicate and whose first axis can be split."""
    devices = subject.module.num_partitions
    if devices < 2 or subject.peak_bytes is None:
        return
    arguments = subject.arguments
    total = sum(value.bytes for value in arguments)
    for value in arguments:
        is_replicated = subject.replicated is not None and value.instruction.parameter_number in subject.replicated
        if not is_replicated or value.index or subject.known.kind(value) not in _SHARED:
            continue
        axis = next((n for n, d in enumerate(value.shape.dimensions) if d % devices == 0), None)
        if axis is None or value.bytes < _SMALLEST * total:
            continue
        saved = value.bytes - value.bytes // devices
        name = value.instruction.op_name or value.instruction.name
        yield Advice(
            kind="replicated",
            text=f"argument {name!r}, {size(value.bytes)}, is whole on each of {devices} devices; sharded along axis "
            f"{axis} it takes {size(value.bytes // devices)}: peak {size(subject.peak_bytes - saved)}, as long as it "
            f"need not be gathered as a whole at the peak",
            bytes=saved,
            source=name,
            new_peak_bytes=subject.peak_bytes - saved,
            moves_peak=True,
            how="exact",
        )
