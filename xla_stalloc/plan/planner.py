"""From a scheduled module to a better one: the temporal lever from end to end.

Deterministic: the same module and options give the same bytes in every process; effort is counted in moves.
"""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xla_stalloc.hlo import Computation, Module
from xla_stalloc.hlo.barriers import without_barriers
from xla_stalloc.hlo.rewrite import Edit, serialize, view
from xla_stalloc.lifetimes import Lifetimes, of
from xla_stalloc.plan.options import PlannedModule, PlanOptions
from xla_stalloc.plan.record import PlanRecord
from xla_stalloc.plan.verify import verify
from xla_stalloc.scheduling import solve, verify_order
from xla_stalloc.scheduling.elide import avoidable_copies, edit_for
from xla_stalloc.scheduling.extract import Region, extract
from xla_stalloc.scheduling.graph import Int64Array
from xla_stalloc.scheduling.module_bound import module_lower_bound
from xla_stalloc.scheduling.polish import polish

_MOVES_PER_SECOND = 100_000  # of local search, for a budget in seconds; nominal, so that plans do not depend on clocks
_CANDIDATES = 8  # orders of one computation whose allocation is emulated
_POLISHED = 2  # of these, the ones whose allocation is searched
_SMALLEST = 4  # nodes of a computation worth ordering

Orders = dict[int, list[int]]  # computation id -> instruction ids


@dataclass(frozen=True)
class _Plan:
    """A version of the module with the best orders found for it.

    Attributes:
      module: a view of the stock module after `edits`.
      lifetimes: of `module` without its optimization barriers.
      temp_bytes: by emulation.
    """

    module: Module
    lifetimes: Lifetimes
    edits: Mapping[int, Edit]
    orders: Orders
    temp_bytes: int


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
    started = time.perf_counter()
    stock = Module.from_bytes(serialized, "compiler hook")
    lifetimes = of(without_barriers(stock))
    stock_bytes = lifetimes.temp_bytes({})
    best = _Plan(stock, lifetimes, {}, {}, stock_bytes)
    if stock.is_scheduled and stock_bytes:
        moves = int(options.budget_seconds * _MOVES_PER_SECOND)
        best = min(best, *_variants(stock, lifetimes, stock_bytes, moves), key=lambda plan: plan.temp_bytes)
    injected = best.temp_bytes < stock_bytes
    planned: bytes | None = None
    if injected:
        planned = serialize(stock, best.edits, best.orders)
        verify(stock, planned)
    assignment = best.lifetimes.under(_known(best)).assignment()
    record = PlanRecord(
        module=stock.name,
        mode=options.mode,
        stock_temp_bytes=stock_bytes,
        temp_bytes=best.temp_bytes,
        peak_live_bytes=assignment.peak_live_bytes,
        lower_bound_bytes=module_lower_bound(best.module, best.lifetimes),
        levers=("temporal",) if injected else (),
        reason="" if injected else "no order found needs less than XLA's own",
        plan_seconds=time.perf_counter() - started,
    )
    return PlannedModule(planned, record)


def _variants(stock: Module, lifetimes: Lifetimes, stock_bytes: int, moves: int) -> Iterator[_Plan]:
    """Plans with and, if those do not help, without the avoidable copies of donated arguments removed."""
    copies = avoidable_copies(lifetimes)
    if copies:
        edits = {stock.entry.id: edit_for(copies)}
        module = view(stock, edits)
        changed = of(without_barriers(module), like=lifetimes)
        plan = _order(_Plan(module, changed, edits, {}, changed.temp_bytes({})), moves)
        yield plan
        if plan.temp_bytes < stock_bytes:
            return
    yield _order(_Plan(stock, lifetimes, {}, {}, stock_bytes), moves)


def _order(best: _Plan, moves: int) -> _Plan:
    """Orders every computation, callees before their callers, as the emulated allocation says."""
    for computation in best.module.computations:
        runs = computation.id in best.lifetimes.dataflow.order
        if runs and computation.is_scheduled and len(computation.sequence) >= _SMALLEST:
            best = _order_computation(best, computation, moves)
    return best


def _order_computation(best: _Plan, computation: Computation, moves: int) -> _Plan:
    region = extract(best.module, best.lifetimes.under(_known(best)), computation)
    ranked = [
        (_with_order(best, region, candidate.order), candidate.peak_bytes, candidate.order)
        for candidate in solve(region.graph, moves)[:_CANDIDATES]
    ]
    # Among equal allocations, a lower peak of its own leaves more room to the callers.
    ranked.sort(key=lambda entry: (entry[0].temp_bytes, entry[1]))
    if computation is best.module.entry:
        polished = [polish(best.lifetimes, region, order, _known(best), moves) for _, _, order in ranked[:_POLISHED]]
        ranked += [(_with_order(best, region, order), verify_order(region.graph, order), order) for order in polished]
        ranked.sort(key=lambda entry: (entry[0].temp_bytes, entry[1]))
    plan, peak, order = ranked[0]
    if (plan.temp_bytes, peak) < (best.temp_bytes, region.graph.peak(region.graph.incumbent)):
        verify_order(region.graph, order)
        return plan
    return best


def _with_order(plan: _Plan, region: Region, order: Int64Array) -> _Plan:
    orders = {**plan.orders, region.computation: region.sequence(order)}
    changed = dataclasses.replace(plan, orders=orders)
    return dataclasses.replace(changed, temp_bytes=plan.lifetimes.temp_bytes(_known(changed)))


def _known(plan: _Plan) -> Mapping[int, Sequence[int]]:
    """A plan's orders without the instructions that its lifetimes do not know: optimization barriers."""
    instructions = plan.lifetimes.module.instructions_by_id
    return {computation: [id for id in order if id in instructions] for computation, order in plan.orders.items()}
