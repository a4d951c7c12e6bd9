"""The temporal search on a whole module: which copies to leave out, and in which order each computation runs."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from xla_stalloc.hlo import Computation, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.hlo.rewrite import Edit, view
from xla_stalloc.lifetimes import Lifetimes, UnsupportedModuleError, of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.scheduling import overlap, solve, verify_order
from xla_stalloc.scheduling.constraints import keeps_windows
from xla_stalloc.scheduling.cost import CARDS, Costs
from xla_stalloc.scheduling.elide import avoidable_copies, edit_for
from xla_stalloc.scheduling.extract import Region, choices, extract
from xla_stalloc.scheduling.graph import Int64Array
from xla_stalloc.scheduling.polish import polish

_MOVES_PER_SECOND = 100_000  # of local search, for a budget in seconds; nominal, so that plans do not depend on clocks
_OVERLAP_MOVES_PER_SECOND = 4_000_000  # the same on GPUs, whose compilers take ten times as long
_OVERLAP_MOVES_PER_NODE = 1_000  # more finds nothing
_NEGLIGIBLE = 0.002  # part of the temp bytes that is not worth leaving the order that XLA chose for speed
_SMALLEST = 3  # instructions of a computation worth ordering


@dataclass(frozen=True)
class Found:
    """A version of a module with orders for some of its computations.

    Attributes:
      module: a view of the stock module after `edits`.
      lifetimes: of `module` without its optimization barriers, under its own schedule.
      temp_bytes: of `module` under `orders`, by emulation of XLA's packing, or of a perfect one if that is `spatial`.
      spatial: how `temp_bytes` counts.
      edits: by computation id.
      orders: computation id -> ids of all its instructions.
    """

    module: Module
    lifetimes: Lifetimes
    temp_bytes: int = 0
    spatial: bool = False
    edits: Mapping[int, Edit] = field(default_factory=dict)
    orders: Mapping[int, list[int]] = field(default_factory=dict)

    @property
    def known_orders(self) -> dict[int, list[int]]:
        """The orders without the instructions that `lifetimes` does not know: optimization barriers."""
        known = self.lifetimes.numbering.instruction
        return {computation: [id for id in order if id in known] for computation, order in self.orders.items()}

    @property
    def xla_temp_bytes(self) -> int:
        """Of `module` under `orders`, as XLA packs it."""
        return self.lifetimes.temp_bytes(self.known_orders) if self.spatial else self.temp_bytes

    def with_order(self, region: Region, order: Int64Array) -> "Found":
        """The same with another order of the nodes of a region."""
        changed = dataclasses.replace(self, orders={**self.orders, region.computation: region.sequence(order)})
        return changed.measured()

    def measured(self) -> "Found":
        """The same with the `temp_bytes` of its module and orders."""
        if self.spatial:
            temp_bytes = max(self.lifetimes.under(self.known_orders).live_bytes())
        else:
            temp_bytes = self.lifetimes.temp_bytes(self.known_orders)
        return dataclasses.replace(self, temp_bytes=temp_bytes)


def search(stock: Module, options: PlanOptions) -> tuple[Found, Found]:
    """Stock as it is, and the best version found; that may be stock itself.

    Raises:
      UnsupportedModuleError: the module has a form whose memory is not modelled.
    """
    if stock.platform == "tpu":
        raise UnsupportedModuleError(f"{stock.source}: the TPU compiler reorders instructions after the hook")
    lifetimes = of(without_barriers(stock))
    start = Found(stock, lifetimes, spatial=options.spatial).measured()
    if not stock.is_scheduled or not start.temp_bytes:
        return start, start
    return start, min((start, *_variants(start, options)), key=lambda found: found.temp_bytes)


def _variants(start: Found, options: PlanOptions) -> Iterator[Found]:
    """Orders with and, if those do not help, without the avoidable copies of donated arguments left out."""
    copies = avoidable_copies(start.lifetimes)
    if copies:
        edits = {start.module.entry.id: edit_for(copies)}
        module = view(start.module, edits)
        lifetimes = of(without_barriers(module), like=start.lifetimes)
        found = _order(Found(module, lifetimes, spatial=options.spatial, edits=edits).measured(), options)
        yield found
        if found.temp_bytes < start.temp_bytes:
            return
    yield _order(start, options)


def _order(start: Found, options: PlanOptions) -> Found:
    """Orders every computation, callees before their callers, as the emulated allocation says."""
    found = start
    for computation in _scheduled(found):
        found = _order_computation(found, computation, options)
    if options.memory_budget_bytes:
        found = _within_budget(start, found, options)
    return found if found.temp_bytes < (1 - _NEGLIGIBLE) * start.temp_bytes else start


def _scheduled(found: Found) -> list[Computation]:
    return [c for c in found.module.computations if c.id in found.lifetimes.dataflow.order and c.is_scheduled]


def _within_budget(start: Found, found: Found, options: PlanOptions) -> Found:
    """What hides most communication within the budget, which may be less than stock hides.

    If nothing is within it: `found` as it is, which hides as much as stock.
    """
    unbounded = found
    budget = min(options.memory_budget_bytes, int((1 - _NEGLIGIBLE) * start.temp_bytes) - 1)
    for computation in _scheduled(found):
        if choices(computation) < _SMALLEST:
            continue
        region, now = _now(found, computation, options)
        if (times := _times(found.module, computation, region, options)) is None:
            continue
        if found.temp_bytes > budget:
            best = min((now, _reduce_memory(now, region, computation, options)), key=_Choice.key)
        else:
            best = _hide_more(now, region, times, budget, options)
        if best is not now:
            verify_order(region.graph, best.order)
        found = best.found
    return found if found.temp_bytes <= budget else unbounded


def _now(found: Found, computation: Computation, options: PlanOptions) -> tuple[Region, "_Choice"]:
    """The scheduling problem of a computation, and the order that it has."""
    # Of the module's own order: what may share a buffer there is what the graph takes for granted.
    others = {id: order for id, order in found.known_orders.items() if id != computation.id}
    lifetimes = found.lifetimes.under(others)
    region = extract(found.module, lifetimes, computation, pin_collectives=options.pin_collectives)
    order = region.graph.incumbent
    if computation.id in found.orders:
        order = region.order(found.orders[computation.id])
    return region, _Choice(found, order, region.graph.peak(order))


def _hide_more(now: "_Choice", region: Region, times: overlap.Times, budget: int, options: PlanOptions) -> "_Choice":
    """An order that exposes less communication within the budget, or the one that there is."""
    # What lives in the callers, and beside the region, is not its to choose.
    limit = budget - max(0, now.found.temp_bytes - now.peak_bytes)
    for order in overlap.orders_within(region.graph, times, now.order, _moves(region, options), limit):
        choice = _choice(now.found, region, order)
        if choice.found.temp_bytes <= budget:
            return choice
    return now


def _order_computation(found: Found, computation: Computation, options: PlanOptions) -> Found:
    if choices(computation) < _SMALLEST:
        return found
    region, stock = _now(found, computation, options)
    if (times := _times(found.module, computation, region, options)) is not None:
        best = _hide_communication(stock, region, times, options)
    else:
        best = _reduce_memory(stock, region, computation, options)
    if best is not stock:
        verify_order(region.graph, best.order)
    return best.found


def _times(module: Module, computation: Computation, region: Region, options: PlanOptions) -> overlap.Times | None:
    """Times of a region's nodes, where there is communication to hide and we may choose what hides it."""
    if keeps_windows(module):
        return None
    times = overlap.times(computation, region.members, Costs(CARDS[options.card]))
    return times if times.communication.any() else None


def _reduce_memory(stock: "_Choice", region: Region, computation: Computation, options: PlanOptions) -> "_Choice":
    found, moves = stock.found, int(options.budget_seconds * _MOVES_PER_SECOND)
    orders = [candidate.order for candidate in solve(region.graph, moves) if candidate.name != "incumbent"]
    best = min([stock, *(_choice(found, region, order) for order in orders)], key=_Choice.key)
    if computation is not found.module.entry:
        return best
    polished = _choice(found, region, polish(found.lifetimes, region, best.order, found.known_orders, moves))
    # At equal peaks, an order that XLA packs well is easier for our packer, too.
    return min((polished, best) if options.spatial else (best, polished), key=_Choice.key)


def _hide_communication(stock: "_Choice", region: Region, times: overlap.Times, options: PlanOptions) -> "_Choice":
    """The order of least memory among those that expose no more communication than stock's."""
    orders = overlap.hiding_orders(region.graph, times, _moves(region, options))
    return min([stock, *(_choice(stock.found, region, order) for order in orders)], key=_Choice.key)


def _moves(region: Region, options: PlanOptions) -> int:
    """Effort of a search for orders that hide communication."""
    effort = int(options.budget_seconds * _OVERLAP_MOVES_PER_SECOND)
    return min(effort, _OVERLAP_MOVES_PER_NODE * region.graph.nodes)


class _Choice(NamedTuple):
    """What comes of an order of a region, the order, and its peak in the region alone."""

    found: Found
    order: Int64Array
    peak_bytes: int

    def key(self) -> tuple[int, int]:
        """Among equal allocations, a lower peak of its own leaves more room to the callers."""
        return self.found.temp_bytes, self.peak_bytes


def _choice(found: Found, region: Region, order: Int64Array) -> _Choice:
    return _Choice(found.with_order(region, order), order, region.graph.peak(order))
