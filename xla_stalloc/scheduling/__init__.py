"""The temporal lever: orders of a computation's nodes in which less is live at once. Knows nothing of HLO or JAX."""

from xla_stalloc.scheduling.bounds import lower_bound
from xla_stalloc.scheduling.graph import Buffer, Graph, GraphError
from xla_stalloc.scheduling.solve import DEFAULT_MOVES, Candidate, solve
from xla_stalloc.scheduling.verify import OrderError, verify_order

__all__ = [
    "DEFAULT_MOVES",
    "Buffer",
    "Candidate",
    "Graph",
    "GraphError",
    "OrderError",
    "lower_bound",
    "solve",
    "verify_order",
]
