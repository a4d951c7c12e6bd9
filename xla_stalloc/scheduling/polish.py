"""The last step of a search: small moves, each judged by the emulated allocation of the whole module."""

from collections.abc import Mapping, Sequence

from xla_stalloc import _core
from xla_stalloc.lifetimes import Lifetimes
from xla_stalloc.lifetimes.program import csr
from xla_stalloc.scheduling.extract import Region
from xla_stalloc.scheduling.graph import Int64Array

_EVALUATIONS_PER_MOVE = 1  # divided by the module's instructions: about what a packing costs beside a move of a search


def polish(
    lifetimes: Lifetimes, region: Region, order: Int64Array, orders: Mapping[int, Sequence[int]], moves: int
) -> Int64Array:
    """A variant of `order` whose allocation is not higher, often lower.

    Args:
      lifetimes: of the module without barriers.
      region: the computation whose nodes `order` puts in order.
      order: int64[nodes].
      orders: of the other computations, as instruction ids.
      moves: effort, in moves of the search on the graph.
    """
    sequences = lifetimes.numbered_sequences(orders)
    known = lifetimes.numbering.instruction
    best, _ = _core.polish(
        graph=region.graph.kernel,
        program=lifetimes.program,
        rules=lifetimes.rules,
        sequences=sequences,
        computation=lifetimes.numbering.computation[region.computation],
        first=[known[id] for id in region.first],
        members=csr([known[id] for id in group if id in known] for group in region.members),
        order=order,
        alignment=lifetimes.alignment,
        evaluations=_EVALUATIONS_PER_MOVE * moves // len(lifetimes.numbering.instructions),
        seed=0,
    )
    return best
