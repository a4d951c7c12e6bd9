"""The map of a program as this project plans it: the order that the planner finds, and offsets of our packer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from xla_stalloc.hlo import HloError, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.lifetimes import Assignment, Lifetimes, Value, of
from xla_stalloc.packing import HeapItem, verify_placement
from xla_stalloc.packing.lowest import lowest
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.report import figures
from xla_stalloc.report.map.allocations import from_emulation, memory_spaces
from xla_stalloc.report.map.boxes import MemoryMap, draw


def planned_map(module: Module, options: PlanOptions | None = None) -> MemoryMap:
    """The map of a module's plan; where nothing better is found, that of the module itself.

    Offsets are the packer's on XLA:CPU, whose executables take them, and XLA's elsewhere. By default the plan is
    that of processes that all run it, so that collectives need not keep stock's order.

    Raises:
        HloError: XLA's buffer assignment is not reproduced for this module, so other orders cannot be judged.
        UnsupportedModuleError: the module has a form whose memory is not modelled.
        PlanError: the plan did not pass the verifier.
        PlacementError: the offsets did not.
    """
    stock = of(without_barriers(module)).assignment()
    if module.buffer_assignment is not None:
        told = figures.from_xla(module.buffer_assignment).temp
        if told != stock.temp_bytes:
            raise HloError(
                module.source,
                f"module {module.name!r} cannot be planned: the emulation of buffer assignment finds "
                f"{stock.temp_bytes} bytes of temps where XLA says {told}, so it cannot judge other orders",
            )
    spatial = module.platform == "cpu"
    options = options or PlanOptions(mode="report", spatial=spatial, pin_collectives=False)
    decided = plan_module(module.proto.SerializeToString(), options)
    if decided.serialized is not None:
        module = Module.from_bytes(decided.serialized, f"plan of {module.source}", like=module)
    lifetimes = of(without_barriers(module))
    assignments = {space: lifetimes.assignment(space) for space in memory_spaces(lifetimes)}
    if spatial:
        assignments[0] = _packed(lifetimes, assignments[0])
    return draw(lifetimes, from_emulation(lifetimes, assignments), "planned", "planned")


def _packed(lifetimes: Lifetimes, assignment: Assignment) -> Assignment:
    """The same with offsets of our own, where these are lower."""
    # Tables of tuples need no memory: nothing on a CPU reads them.
    blocks = [block for block in _blocks(assignment) if block[0] in assignment.offsets]
    items = [
        HeapItem(max(value.bytes for value in block), [lifetimes.live_range(value) for value in block], block[0].id)
        for block in blocks
    ]
    packed = lowest(items, lifetimes.alignment)
    if packed.height >= assignment.temp_bytes:
        return assignment
    verify_placement(items, packed.offsets, packed.height, lifetimes.alignment)
    offsets = {value: offset for block, offset in zip(blocks, packed.offsets, strict=True) for value in block}
    return replace(assignment, temp_bytes=packed.height, offsets=offsets)


def _blocks(assignment: Assignment) -> list[list[Value]]:
    """The values of each block of the heap: those that took over the memory of another one are in its block."""
    first: dict[Value, Value] = {}
    blocks: defaultdict[Value, list[Value]] = defaultdict(list)
    for kind, value, other in assignment.events:
        if kind != "free":
            first[value] = first[other] if other is not None else value
            blocks[first[value]].append(value)
    return list(blocks.values())
