"""A plan's figures in words."""

from __future__ import annotations

from xla_stalloc.plan.record import PlanRecord


def size(count: int) -> str:
    """Bytes as ``2.1 GB``, ``23.3 MB``, ``15.2 kB`` or ``12 B``."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def saved_percent(record: PlanRecord) -> float:
    """Temp bytes saved, in percent of stock's."""
    return 100 * record.saved_bytes / record.stock_temp_bytes if record.stock_temp_bytes else 0.0


def bound_in_words(record: PlanRecord) -> str:
    """The lower bound, unless a bound of 0 only says that none is known."""
    known = record.lower_bound_bytes or not record.temp_bytes
    return f"lower bound {size(record.lower_bound_bytes)}" if known else "no bound is known"


def why_not_lower(record: PlanRecord) -> str:
    """Why a plan does not need less."""
    if record.temp_bytes <= record.lower_bound_bytes:
        return "no order of these instructions needs less"
    gap = f"{size(record.temp_bytes - record.lower_bound_bytes)} above the bound, which no order may reach"
    parts = [gap if record.lower_bound_bytes else bound_in_words(record)]
    holes = record.temp_bytes - record.peak_live_bytes
    if holes > 0:
        parts.append(f"{size(holes)} of it lie in holes between buffers")
    return "; ".join([*parts, *filter(None, [record.reason])])
