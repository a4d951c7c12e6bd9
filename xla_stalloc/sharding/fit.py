"""Whether a step fits: what the compiler said, as plain data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Memory of one step on each device, in bytes; None: not known.

    Attributes:
        topology: the devices, as given.
        mesh: its axes with sizes, `fsdp=16,tp=4`.
        arguments: keyword arguments of the user's function.
        fits: whether the peak is within the limit; by the estimate if nothing was compiled; None if there is no limit.
        argument_bytes: all arguments, donated ones included.
        output_bytes: all outputs, those in donated memory included.
        alias_bytes: outputs that lie in the memory of donated arguments.
        temp_bytes: the temporary allocation.
        stock_temp_bytes: what it would be without planning, by emulation; only if planning was asked for.
        code_bytes: of the program itself, where the compiler tells.
        peak_bytes: arguments + outputs - aliases + temps + code: what has to be free for the step.
        limit_bytes: what a program may use; None for CPU devices.
        largest_block_bytes: the largest piece that has to be contiguous: the temporary allocation, or one argument.
        estimate_bytes: the peak, estimated from shardings alone.
        flops: of the products of matrices in a step on each device, with what is recomputed; from shardings.
        collective_bytes: that each device sends to others in a step; from shardings.
        compile_seconds: of the compiler, also if the result comes from the cache.
        estimate_seconds: from the lowered step to the estimate.
        cached: whether the compiler ran earlier.
        reason: why it does not fit, or is not known; `""` if all is well.
    """

    topology: str
    mesh: str
    arguments: dict[str, Any]
    fits: bool | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    temp_bytes: int | None = None
    stock_temp_bytes: int | None = None
    code_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    largest_block_bytes: int | None = None
    estimate_bytes: int | None = None
    flops: int | None = None
    collective_bytes: int | None = None
    compile_seconds: float | None = None
    estimate_seconds: float | None = None
    cached: bool = False
    reason: str = ""

    @property
    def spare_bytes(self) -> int | None:
        """What the limit leaves; negative if the step does not fit."""
        if self.limit_bytes is None or self.peak_bytes is None:
            return None
        return self.limit_bytes - self.peak_bytes

    @property
    def estimate_error(self) -> float | None:
        """Of the estimated peak, relative to the compiled one: 0.05 is five per cent too much."""
        if self.estimate_bytes is None or not self.peak_bytes or self.temp_bytes is None:
            return None
        return self.estimate_bytes / self.peak_bytes - 1

    def to_dict(self) -> dict[str, Any]:
        """Attributes and properties."""
        return dataclasses.asdict(self) | {"spare_bytes": self.spare_bytes, "estimate_error": self.estimate_error}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Fit:
        """The inverse of `to_dict`; keys of other versions are left out."""
        return cls(**{field.name: values[field.name] for field in dataclasses.fields(cls) if field.name in values})
