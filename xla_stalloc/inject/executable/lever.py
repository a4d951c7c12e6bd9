"""Puts our offsets into an executable that was just compiled or loaded, before it first runs."""

from __future__ import annotations

import logging
import time
from typing import Any

from xla_stalloc.inject.errors import in_short
from xla_stalloc.inject.executable import whole
from xla_stalloc.inject.executable.errors import NotRewritableError, NotSmallerError
from xla_stalloc.inject.executable.repack import repack
from xla_stalloc.inject.program import Program, size_of
from xla_stalloc.plan.record import PlanRecord

_logger = logging.getLogger(__name__)


def impossible(program: Program) -> str:
    """Why no executable of this program can be given other offsets; "" if that may work."""
    if program.platform != "cpu":
        return "only executables of XLA:CPU can be rewritten"
    if program.has_callbacks:
        return "a program that calls back into Python cannot be loaded again"
    return ""


def apply(program: Program, executable: Any, record: PlanRecord) -> tuple[Any, PlanRecord]:
    """The executable with our offsets, loaded, and its record; or the same one, and the reason in the record.

    The persistent compilation cache keeps what XLA made: offsets are found again after each load, which takes a small
    part of the time of loading, and an entry never depends on what this project once thought of it.
    """
    size = size_of(executable)
    if size is None or not size.temp:
        return executable, record
    if reason := impossible(program):
        return executable, record.because(f"spatial: {reason}")
    started = time.perf_counter()
    reason = ""
    try:
        repacked = repack(program.serialize(executable))
        loaded = program.load(repacked.data)
        if (found := size_of(loaded)) == size._replace(temp=repacked.temp_bytes):
            whole.keep(loaded, repacked.data)
            executable = loaded
            record = record.replace(
                temp_bytes=repacked.temp_bytes,
                peak_live_bytes=min(repacked.live_bytes, repacked.temp_bytes),
                # Tables of pointers count for the bound, but need no memory here: nothing on a CPU reads them.
                lower_bound_bytes=min(record.lower_bound_bytes, repacked.temp_bytes),
                levers=(*record.levers, "spatial"),
            )
        else:
            reason = f"loaded again, the executable has the size {found}, not {repacked.temp_bytes} bytes of temp"
    except NotSmallerError as error:
        reason = str(error)
        record = record.replace(peak_live_bytes=min(error.live_bytes, size.temp))
    except NotRewritableError as error:
        reason = str(error)
    except Exception as error:
        # Whatever it is, there is an executable that works.
        _logger.info("the spatial lever failed", exc_info=True)
        reason = in_short(error)
    if reason:
        record = record.because(f"spatial: {reason}")
    return executable, record.replace(plan_seconds=record.plan_seconds + time.perf_counter() - started)
