"""How low a peak could be at all."""

from __future__ import annotations

from xla_stalloc import _core
from xla_stalloc.scheduling.graph import Graph


def lower_bound(graph: Graph) -> int:
    """Bytes that the peak of every valid order reaches.

    The most that must be live at one node: what it touches, and what is touched both by something that must run before
    it and by something that must run after it. For the nodes where a good order needs most, what may run on either
    side counts too: the least that can be live there is a minimum cut between what must be done and what cannot be.
    """
    return _core.lower_bound(graph.kernel)
