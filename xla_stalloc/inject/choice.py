"""Compiles a program the way that needs least memory: planned if that is smaller, else as stock XLA does.

One compile is enough in the normal case, where the planned program ends where the emulation said, or clearly below what
stock XLA is thought to need. Every doubt costs a second one, of stock, and the smaller of the two runs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from xla_stalloc.inject import agreement, hook, limits, marker
from xla_stalloc.inject.errors import in_short
from xla_stalloc.inject.executable import lever
from xla_stalloc.inject.program import Program, size_of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.record import PlanRecord

CLEARLY_SMALLER = 0.98
"""The stock figure of a plan is emulated. Where XLA confirms the planned figure to the byte, that is trusted; elsewhere
a stock compile decides unless the plan ends below this part of it."""

FEWEST_OPERATIONS = 8
"""A StableHLO module below this size leaves nothing to reorder; most of these are single eager operations."""

Choice = tuple[Any, PlanRecord]


def best(program: Program, options: PlanOptions) -> Choice:
    """Compiles one program as the options ask; returns the executable that is to run, and its record."""
    spatial = options.mode == "full" and not lever.impossible(program)
    options = dataclasses.replace(options, pin_collectives=False, card=program.card, spatial=spatial)
    if program.has_fewer_operations_than(FEWEST_OPERATIONS):
        return stock(program, f"fewer than {FEWEST_OPERATIONS} operations, nothing to reorder")
    if options.mode == "report":
        return _reported(program, options)
    return _together(program, options) if len(program.processes) > 1 else _planned(program, options)


def _together(program: Program, options: PlanOptions) -> Choice:
    """The planned executable if all processes that compile this program have the same one, else the stock one."""
    try:
        group = agreement.group_of(program, options)
    except agreement.DisagreementError as error:
        return _packed(program, options, *stock(program, str(error)))
    options = dataclasses.replace(options, group=group.key)
    try:
        executable, record = _planned(program, options)
    finally:
        group.compiled()
    planned = "temporal" in record.levers
    vote = agreement.Vote(agreement.digest_of(hook.hlo_of(executable)) if planned else "", record.reason)
    reason = group.settle(vote)
    if reason and planned:
        return _packed(program, options, *stock(program, reason, record, record.compiles + 1))
    return executable, record.because(reason)


def _planned(program: Program, options: PlanOptions) -> Choice:
    """The planned executable if it is smaller than the stock one; this process decides."""
    if missing := hook.register(program.backend):
        return _packed(program, options, *stock(program, missing))

    refused = ""
    with hook.under_way(hook.Compile(program.name, options)) as state:
        try:
            executable = program.compile(marker.marked(program.computation, options))
        except Exception as error:
            if not state.perhaps_injected:
                raise
            refused = f"XLA refused the planned order: {in_short(error)}"
    if refused:
        # If it was the user's program that is wrong, this raises again, and then it is stock XLA's own error.
        record = state.planned.record if state.planned else None
        return _packed(program, options, *stock(program, refused, record, compiles=2))

    injected, record = _recover(executable, options, state)
    if injected:
        return _smaller(program, options, executable, record)
    record = _as_stock(record, executable)
    if limits.RESETS_ENTRY:
        executable, record = _other_order(program, executable, record)
    return _packed(program, options, executable, record)


def _recover(executable: Any, options: PlanOptions, state: hook.Compile) -> tuple[bool, PlanRecord]:
    """Whether the executable has an order of ours, and the record of its planning."""
    if state.planned is not None:
        return state.planned.serialized is not None, state.planned.record
    # The hook did not run: the executable came from the persistent cache, and its record with it.
    serialized = hook.hlo_of(executable)
    if (record := marker.record_of(serialized)) is not None:
        return True, record
    return False, hook.plan(serialized, options).record


def _packed(program: Program, options: PlanOptions, executable: Any, record: PlanRecord) -> Choice:
    """The executable with our offsets in it, where these are asked for and better."""
    return lever.apply(program, executable, record) if options.mode == "full" else (executable, record)


def _smaller(program: Program, options: PlanOptions, executable: Any, record: PlanRecord) -> Choice:
    """The planned executable, or the stock one if that turns out to need no more."""
    size = size_of(executable)
    if size is not None:
        # Without asking XLA about stock; see there.
        limit = (1 if size.temp == record.temp_bytes else CLEARLY_SMALLER) * record.stock_temp_bytes
        executable, record = _packed(program, options, executable, record.replace(temp_bytes=size.temp))
        size = size._replace(temp=record.temp_bytes)
        if size.temp < limit and (size.alias or not program.aliases_arguments()):
            return executable, record
    unplanned = program.compile()
    stock_size = size_of(unplanned)
    if size is None or stock_size is None:
        return unplanned, _as_stock(record, unplanned).because(
            "this runtime does not report the size of a planned program"
        )
    record = record.replace(stock_temp_bytes=stock_size.temp, stock_exact=True, compiles=record.compiles + 1)
    reason = f"the planned order ended at {size.temp} temp bytes, XLA's own at {stock_size.temp}"
    if size.alias < stock_size.alias:
        reason += f", and {stock_size.alias - size.alias} bytes of donated arguments were not reused"
    as_stock = record.replace(temp_bytes=stock_size.temp, levers=()).because(reason)
    unplanned, as_stock = _packed(program, options, unplanned, as_stock)
    stock_size = stock_size._replace(temp=as_stock.temp_bytes)
    if size.temp < stock_size.temp and size.beyond_arguments < stock_size.beyond_arguments:
        return executable, record
    return unplanned, as_stock


def _other_order(program: Program, executable: Any, record: PlanRecord) -> Choice:
    """Where no order can be injected: the smaller of the two that XLA:CPU itself can make.

    Only for modules that this jaxlib could not take back whole; the record says so.
    """
    option = "xla_cpu_scheduler_type"
    if program.platform != "cpu" or option in program.xla_options or not limits.lost(hook.hlo_of(executable)):
        return executable, record
    other = program.compile(**{option: "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"})
    record = record.replace(compiles=record.compiles + 1)
    size = size_of(other)
    if size is None or size.temp >= record.stock_temp_bytes:
        return executable, record
    return other, record.replace(temp_bytes=size.temp, levers=("temporal",)).because(
        "XLA's own memory-optimized order is used instead"
    )


def stock(program: Program, reason: str, record: PlanRecord | None = None, compiles: int = 1) -> Choice:
    """XLA's own result, with the reason why it is not planned."""
    executable = program.compile()
    record = (record or PlanRecord(module=program.name)).because(reason)
    return executable, _as_stock(record, executable).replace(compiles=compiles)


def _as_stock(record: PlanRecord, executable: Any) -> PlanRecord:
    """The record of an executable that is XLA's own: no lever applied, its size measured."""
    size = size_of(executable)
    if size is None:
        return record.replace(temp_bytes=record.stock_temp_bytes, levers=(), stock_exact=False)
    record = record.replace(stock_temp_bytes=size.temp, temp_bytes=size.temp, levers=(), stock_exact=True)
    return record if record.reason else record.because("no smaller order was found")


def _reported(program: Program, options: PlanOptions) -> Choice:
    """Plans what stock XLA compiled, without injecting anything; ``temp_bytes`` is what the plan would reach."""
    executable = program.compile()
    planned = hook.plan(hook.hlo_of(executable), options).record
    record = _as_stock(planned, executable)
    # Without a plan the planner's figure is missing; and where the emulation is off, no plan is above what runs.
    reachable = min(planned.temp_bytes or record.temp_bytes, record.temp_bytes)
    return executable, record.replace(temp_bytes=reachable, reason=planned.reason).because(
        "mode report injects nothing"
    )
