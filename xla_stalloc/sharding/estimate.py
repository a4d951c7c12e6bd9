"""What a step will need, from shardings alone: no compiler runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xla_stalloc.sharding.liveness import peak
from xla_stalloc.sharding.partitioned import Operation, Region, Step, partition


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes on each device.

    Attributes:
        argument_bytes: all arguments; exact but for padding.
        output_bytes: all outputs; likewise.
        alias_bytes: outputs that lie in the memory of donated arguments.
        temp_bytes: the most that is live at once of everything else.
        largest_argument_bytes: of the largest single one.
        flops: of all products of matrices, all turns of loops included.
        collective_bytes: that the device sends to others, all turns of loops included.
    """

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temp_bytes: int
    largest_argument_bytes: int
    flops: int
    collective_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Arguments + outputs - aliases + temps."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.temp_bytes


def estimate(lowered: Any, platform: str = "cpu") -> Estimate:
    """The estimate of a `jax.stages.Lowered`, for the compiler of `cpu`, `cuda` or `tpu`."""
    return of_step(partition(lowered), platform)


def of_step(step: Step, platform: str) -> Estimate:
    """The estimate of one device's program."""
    region = step.region
    held = frozenset((*region.arguments, *region.returned))
    temp = peak(region, held)
    if platform == "cuda":
        # XLA:GPU weighs for each fusion whether to compute again; it ends up between doing so never and always.
        temp = (temp + peak(region, held, keeps=False)) // 2
    return Estimate(
        argument_bytes=sum(value.bytes for value in region.arguments),
        output_bytes=sum(value.bytes for value in region.returned),
        alias_bytes=sum(region.returned[number].bytes for number in step.aliases),
        temp_bytes=temp,
        largest_argument_bytes=max((value.bytes for value in region.arguments), default=0),
        flops=sum(op.flops * times for op, times in _operations(region, 1)),
        collective_bytes=sum(_sent(op) * times for op, times in _operations(region, 1)),
    )


def _operations(region: Region, times: int) -> Iterator[tuple[Operation, int]]:
    for op in region.operations:
        yield op, times
        for inner in op.regions:
            yield from _operations(inner, times * op.repeats)


def _sent(op: Operation) -> int:
    """Bytes that a ring sends from each device."""
    others = op.sharing - 1
    if op.name == "sdy.all_gather":
        return op.operands[0].bytes * others
    if op.name == "sdy.reduce_scatter":
        return op.results[0].bytes * others
    if op.name == "sdy.all_reduce":
        return 2 * op.operands[0].bytes * others // op.sharing
    if op.name in ("sdy.all_to_all", "sdy.collective_permute"):
        return op.operands[0].bytes
    return 0
