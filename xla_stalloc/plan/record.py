"""What planning did to one compiled program: the record that every compile leaves behind."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

SCHEMA = 1
"""Version of the JSON form. Readers ignore keys they do not know, so it rises only when a key changes its meaning."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """Stock against planned memory of one compiled program, for one device.

    Attributes:
        module: Name of the HLO module, e.g. ``"jit_train_step"``.
        fingerprint: Names the program whatever its schedule is; stable across processes and hosts. ``""`` where it was
            not needed: it takes as long as reading the module.
        mode: The mode that was asked for: ``off``, ``report``, ``schedule`` or ``full``.
        stock_temp_bytes: Temporary bytes of XLA's own result.
        temp_bytes: Temporary bytes of what really runs; in mode ``report``, of what the plan would reach.
        peak_live_bytes: Most bytes live at once inside the temporary allocation, under the best order that was found;
            where the spatial lever has read the executable, with each value rounded up to the alignment.
        lower_bound_bytes: No order of these instructions can need fewer temporary bytes than this; 0 if unknown.
        levers: The levers that were applied, e.g. ``("temporal",)``; empty when XLA's own result runs.
        reason: Why a lever was not applied, or ``""``.
        plan_seconds: Time spent on planning in this process; 0 when the plan came out of the persistent cache.
        stock_exact: Whether ``stock_temp_bytes`` was measured on a stock executable, rather than emulated.
        compiles: Executables that were compiled or loaded for this program: 1, or 2 when stock was needed as well.
        compile_seconds: Time those took, planning included.
    """

    module: str
    fingerprint: str = ""
    mode: str = "full"
    stock_temp_bytes: int = 0
    temp_bytes: int = 0
    peak_live_bytes: int = 0
    lower_bound_bytes: int = 0
    levers: tuple[str, ...] = ()
    reason: str = ""
    plan_seconds: float = 0.0
    stock_exact: bool = False
    compiles: int = 1
    compile_seconds: float = 0.0

    @property
    def saved_bytes(self) -> int:
        """Temporary bytes saved against stock; never negative for what runs."""
        return self.stock_temp_bytes - self.temp_bytes

    def replace(self, **changes: Any) -> PlanRecord:
        """Returns a copy with these fields changed."""
        return dataclasses.replace(self, **changes)

    def because(self, reason: str) -> PlanRecord:
        """Returns a copy with ``reason`` added behind the reasons that are there already."""
        return self.replace(reason="; ".join(filter(None, (self.reason, reason))))

    def to_json(self) -> str:
        """Returns one line of JSON; `from_json` reads it back to an equal record."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> PlanRecord:
        """Reads what `to_json` wrote, in this version of the project or another one.

        Keys that are unknown here are ignored and missing ones keep their defaults.

        Raises:
            ValueError: The text is not a JSON object, has no ``module``, or a field has the wrong type.
        """
        try:
            raw = json.loads(text)
        except ValueError as error:
            raise ValueError(f"plan record: expected a JSON object, found {text[:80]!r} ({error})") from error
        if not isinstance(raw, dict):
            raise ValueError(f"plan record: expected a JSON object, found a {type(raw).__name__}")
        if "module" not in raw:
            raise ValueError("plan record: the key 'module' is missing; was this file written by xla_stalloc?")
        known = {f.name: raw[f.name] for f in dataclasses.fields(cls) if f.name in raw}
        return cls(**{name: _checked(name, value) for name, value in known.items()})


_TYPES: dict[str, type] = {
    "module": str,
    "fingerprint": str,
    "mode": str,
    "reason": str,
    "stock_temp_bytes": int,
    "temp_bytes": int,
    "peak_live_bytes": int,
    "lower_bound_bytes": int,
    "compiles": int,
    "stock_exact": bool,
    "plan_seconds": float,
    "compile_seconds": float,
}


def _checked(name: str, value: Any) -> Any:
    """Returns the value of a field as the dataclass holds it, or raises ValueError."""
    if name == "levers":
        if isinstance(value, list) and all(isinstance(lever, str) for lever in value):
            return tuple(value)
        raise ValueError(f"plan record: 'levers' must be a list of strings, found {value!r}")
    expected = _TYPES[name]
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise ValueError(f"plan record: {name!r} must be {expected.__name__}, found {value!r}")
    return value
