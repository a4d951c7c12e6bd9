"""What a scheduler sees of a computation: nodes with predecessors, and the buffers that nodes touch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from xla_stalloc import _core

Int64Array = NDArray[np.int64]


class GraphError(ValueError):
    """A graph that contradicts itself; names the node or buffer and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage that lives from the first to the last node that touches it."""

    size: int
    """Bytes."""
    touches: Sequence[int]
    """The nodes that write or read it, at least one."""
    defs: Sequence[int] = ()
    """Those of `touches` that write it; empty only if it is `live_in`."""
    reuses: Sequence[int] = ()
    """Numbers of other buffers whose storage it may take over at birth, the preferred one first."""
    live_in: bool = False
    """It is live before the first node."""
    live_out: bool = False
    """It stays live behind the last node."""


@dataclass(frozen=True)
class Graph:
    """Nodes 0..n-1, whose numbers are a topological order (the incumbent: XLA's own), and the buffers they touch.

    Memory model: at a node, every buffer first touched there becomes live. If one of its `reuses` was live before the
    node, dies at it, has the same size and was not taken yet, the buffer takes over that storage. The node's memory is
    what is live then plus its lump; behind it, what it was the last to touch is freed.
    """

    predecessors: Sequence[Sequence[int]]
    """Of each node: the nodes that must run before it."""
    lump_bytes: Sequence[int]
    """Of each node: bytes that are live only while it runs (the peak of a computation that it calls)."""
    buffers: Sequence[Buffer]

    def __post_init__(self) -> None:
        """Raise GraphError where the graph contradicts itself."""
        self._check_lumps()
        for node, before in enumerate(self.predecessors):
            if before and not (min(before) >= 0 and max(before) < node):
                raise GraphError(f"node {node} has predecessors {list(before)}: number them before the node itself")
        for number, buffer in enumerate(self.buffers):
            self._check_buffer(number, buffer)

    def with_lumps(self, lump_bytes: Sequence[int]) -> Graph:
        """The same graph with other lumps.

        Raises:
            GraphError: there is not one for each node, or one is negative.
        """
        other = copy.copy(self)  # what else there is to check was checked
        other.__dict__.pop("kernel", None)
        other.__dict__["lump_bytes"] = lump_bytes
        other._check_lumps()
        return other

    def _check_lumps(self) -> None:
        if len(self.lump_bytes) != len(self.predecessors):
            raise GraphError(f"{len(self.lump_bytes)} lumps for {len(self.predecessors)} nodes: give one for each node")
        for node, lump in enumerate(self.lump_bytes):
            if lump < 0:
                raise GraphError(f"node {node} has a lump of {lump} bytes: it cannot be negative")

    def _check_buffer(self, number: int, buffer: Buffer) -> None:
        touches = set(buffer.touches)
        if buffer.size < 0:
            raise GraphError(f"buffer {number} has {buffer.size} bytes: a size cannot be negative")
        if not touches:
            raise GraphError(f"buffer {number} is touched by no node: leave it out, or add it to every order's peak")
        outside = min(touches) < 0 or max(touches) >= len(self.predecessors)
        if outside or len(touches) != len(buffer.touches):
            raise GraphError(f"buffer {number} is touched by {list(buffer.touches)}: name each existing node once")
        if not touches.issuperset(buffer.defs):
            raise GraphError(f"buffer {number} is written by {list(buffer.defs)}, which do not all touch it")
        if not buffer.defs and not buffer.live_in:
            raise GraphError(f"buffer {number} is never written and not live_in: name the nodes that write it")
        reuses = buffer.reuses
        if reuses and (number in reuses or min(reuses) < 0 or max(reuses) >= len(self.buffers)):
            raise GraphError(f"buffer {number} reuses {list(buffer.reuses)}: name other, existing buffers")

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self.predecessors)

    @property
    def incumbent(self) -> Int64Array:
        """The order that the graph came with, int64[nodes]."""
        return np.arange(self.nodes, dtype=np.int64)

    @cached_property
    def kernel(self) -> _core.Graph:
        """The same graph in the form that the C++ kernels read."""
        predecessor_offsets, predecessors = _rows(self.predecessors)
        touch_offsets, touches = _rows(buffer.touches for buffer in self.buffers)
        reuse_offsets, reuses = _rows(buffer.reuses for buffer in self.buffers)
        return _core.Graph(
            predecessor_offsets=predecessor_offsets,
            predecessors=predecessors,
            lump_bytes=np.array(self.lump_bytes, dtype=np.int64),
            buffer_bytes=np.array([buffer.size for buffer in self.buffers], dtype=np.int64),
            touch_offsets=touch_offsets,
            touches=touches,
            reuse_offsets=reuse_offsets,
            reuses=reuses,
            live_in=np.array([buffer.live_in for buffer in self.buffers], dtype=np.bool_),
            live_out=np.array([buffer.live_out for buffer in self.buffers], dtype=np.bool_),
        )

    def memory(self, order: Int64Array) -> Int64Array:
        """Bytes live while each node of a valid order runs, int64[nodes]."""
        return _core.memory_profile(self.kernel, order)

    def peak(self, order: Int64Array) -> int:
        """The most bytes live at once in a valid order."""
        return int(self.memory(order).max(initial=0))


def _rows(rows: Iterable[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
    """Rows of numbers in compressed form: where each row begins (and the last ends), and all the numbers."""
    held = list(rows)
    offsets = np.zeros(len(held) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in held], out=offsets[1:])
    return offsets, np.fromiter(chain.from_iterable(held), dtype=np.int64, count=int(offsets[-1]))
