"""A bound on the temp bytes of a whole module, over all orders of all its computations."""

from xla_stalloc.hlo import Module
from xla_stalloc.lifetimes import Kind, Lifetimes
from xla_stalloc.scheduling.bounds import lower_bound
from xla_stalloc.scheduling.extract import choices, extract

_SMALLEST = 2  # instructions of a computation that can need memory of their own at once
_MOVABLE = (Kind.TEMP, Kind.DONATED, Kind.OUTPUT)


def module_lower_bound(module: Module, lifetimes: Lifetimes, pin_collectives: bool = True) -> int:
    """Temp bytes below which no order of the module's instructions can get.

    What must be live at once wherever it lies, less all that the memory of donated arguments and of outputs could hold
    of it. While a node runs, so do the computations that it calls: their own bounds count on top of what is live around
    them, but for the loop state, which is part of both.

    Args:
      module: with its optimization barriers.
      lifetimes: of `module` without barriers.
      pin_collectives: whether collectives keep their order.
    """
    bounds: dict[int, int] = {}
    for computation in module.computations:  # callees come before their callers
        if computation.id not in lifetimes.dataflow.order or choices(computation) < _SMALLEST:
            continue
        region = extract(module, lifetimes, computation, _MOVABLE, pin_collectives)
        instructions = {instruction.id: instruction for instruction in computation.instructions}
        lumps = []
        for members, shared in zip(region.members, region.shared_bytes, strict=True):
            called = (c.id for id in members for c in instructions[id].called)
            lumps.append(max(max((bounds.get(id, 0) for id in called), default=0) - shared, 0))
        bounds[computation.id] = lower_bound(region.graph.with_lumps(lumps))
    elsewhere = sum(buffer.bytes for buffer in lifetimes.buffers if buffer.kind in (Kind.DONATED, Kind.OUTPUT))
    return max(bounds.get(module.entry.id, 0) - elsewhere, 0)
