"""How low a peak could be at all."""

from __future__ import annotations

from xla_stalloc import _core
from xla_stalloc.scheduling.graph import Graph


def lower_bound(graph: Graph) -> int:
    """Bytes that the peak of every valid order reaches.

    The most that must be live at one node: the buffers that it touches, and those touched both by something that must
    run before it and by something that must run after it.
    """
    return _core.lower_bound(graph.kernel)
