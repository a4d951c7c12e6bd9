"""From a scheduled module to a better one: the temporal lever from end to end.

Deterministic: the same module and options give the same bytes in every process; effort is counted in moves.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from xla_stalloc.hlo import Module
from xla_stalloc.hlo.rewrite import serialize
from xla_stalloc.plan.options import PlannedModule, PlanOptions
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.plan.search import search
from xla_stalloc.plan.verify import verify
from xla_stalloc.scheduling.module_bound import module_lower_bound


def plan_module(serialized: bytes, options: PlanOptions) -> PlannedModule:
    """Plans a serialized, scheduled HloModuleProto.

    Returns:
      The module to use in its place, or None for stock when nothing found is smaller; with the record, whose figures
      come from the emulation of XLA's buffer assignment.

    Raises:
      HloError: the bytes are no complete module.
      UnsupportedModuleError: the module has a form whose memory is not modelled.
      PlanError: the plan did not pass the verifier.
    """
    with without_garbage_collection():
        return _plan(serialized, options)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A module becomes hundreds of thousands of objects, and each collection would visit them all: a fifth of the time.

    The switch is the process's; another thread that plans at the same time may turn collection on early, no more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _plan(serialized: bytes, options: PlanOptions) -> PlannedModule:
    started = time.perf_counter()
    stock = Module.from_bytes(serialized, "compiler hook", lazy=True)
    start, found = search(stock, options)
    planned: bytes | None = None
    if found.temp_bytes < start.temp_bytes:
        planned = serialize(stock, found.edits, found.orders, edited=found.module)
        verify(stock, planned, options.pin_collectives)
    reasons = [] if planned is not None else ["no order found needs less than XLA's own"]
    if 0 < options.memory_budget_bytes < found.temp_bytes:
        reasons.append(f"no order found needs as little as the memory budget, {options.memory_budget_bytes} bytes")
    bound = module_lower_bound(found.module, found.lifetimes, options.pin_collectives)
    record = PlanRecord(
        module=stock.name,
        mode=options.mode,
        stock_temp_bytes=start.xla_temp_bytes,
        temp_bytes=found.xla_temp_bytes,
        peak_live_bytes=max(found.lifetimes.under(found.known_orders).live_bytes()),
        lower_bound_bytes=bound if bound <= found.temp_bytes else 0,  # a bound that was beaten is none
        levers=("temporal",) if planned is not None else (),
        reason="; ".join(reasons),
        plan_seconds=time.perf_counter() - started,
    )
    return PlannedModule(planned, record)
