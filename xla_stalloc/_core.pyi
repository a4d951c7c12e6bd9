"""C++ kernels of packing and scheduling. Arrays are one-dimensional and contiguous; results are new int64 arrays."""

import enum

import numpy as np
from numpy.typing import NDArray

_Int64 = NDArray[np.int64]
_Bool = NDArray[np.bool_]

class Graph:
    """A scheduling graph in the kernels' own form; see ``xla_stalloc.scheduling.Graph``, which validates it."""

    def __init__(
        self,
        predecessor_offsets: _Int64,
        predecessors: _Int64,
        lump_bytes: _Int64,
        buffer_bytes: _Int64,
        touch_offsets: _Int64,
        touches: _Int64,
        reuse_offsets: _Int64,
        reuses: _Int64,
        live_in: _Bool,
        live_out: _Bool,
    ) -> None: ...

class ChildOrder(enum.Enum):
    """In which order a depth-first search visits what a node needs."""

    EARLIEST_FIRST = 0
    LATEST_FIRST = 1
    SHALLOWEST_FIRST = 2
    HILL_VALLEY = 3

def memory_profile(graph: Graph, order: _Int64) -> _Int64:
    """Bytes live while each node of the order runs."""

def depth_first(graph: Graph, child_order: ChildOrder) -> _Int64:
    """Post-order from the sinks."""

def tighten(graph: Graph, order: _Int64) -> _Int64:
    """The same order, but what takes memory runs as late as it can and what frees memory as early as it can."""

def cut_peaks(graph: Graph, order: _Int64) -> _Int64:
    """Reordered around its peak by minimum cuts, as long as that lowers the peak."""

def local_search(graph: Graph, order: _Int64, moves: int, window: int, floor: int, seed: int) -> _Int64:
    """The best order found from this one by annealed moves; stops at a peak of ``floor`` bytes."""

def heap_height(graph: Graph, order: _Int64, alignment: int) -> int:
    """Bytes of the heap that best fit packs the buffers of an order into."""

def lower_bound(graph: Graph) -> int:
    """A peak in bytes that no order beats."""

def best_fit(
    sizes: _Int64, interval_offsets: _Int64, starts: _Int64, ends: _Int64, ids: _Int64, alignment: int
) -> tuple[int, _Int64]:
    """Height and offsets of XLA's heap; see ``xla_stalloc.packing.best_fit``."""
