"""Which slices must move together: an abstract interpretation of the thunks, forward.

Every byte of the temp allocation carries the writes that it may come from. Whoever reads it must lie, relative to each
of these, as in the original. Paths are merged where control flow joins, loops are repeated until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from xla_stalloc.inject.executable.errors import NotRewritableError
from xla_stalloc.inject.executable.regions import Regions
from xla_stalloc.inject.executable.thunks import Form, Program, Site, Step

_Memory = Regions[frozenset[int]]  # the sites that may have written a piece last


def groups(program: Program) -> list[int]:
    """For each site of the program the number of its group; sites of a group keep their distances.

    Groups are numbered by the first site of each.

    Raises:
        NotRewritableError: A thunk reads temporary bytes that no thunk has written.
    """
    interpreter = _Interpreter(len(program.slices))
    interpreter.run(program.steps, Regions())
    roots = [interpreter.find(site) for site in range(len(program.slices))]
    numbers = {root: number for number, root in enumerate(dict.fromkeys(roots))}
    return [numbers[root] for root in roots]


class _Interpreter:
    """Runs steps on a memory of writers, and unites sites."""

    def __init__(self, sites: int) -> None:
        self._parent = list(range(sites))

    def find(self, site: int) -> int:
        while self._parent[site] != site:
            self._parent[site] = site = self._parent[self._parent[site]]
        return site

    def _unite(self, one: int, other: int) -> None:
        self._parent[self.find(one)] = self.find(other)

    def run(self, steps: Iterable[Step], memory: _Memory) -> _Memory:
        """The memory after the steps; the one before them is changed."""
        for step in steps:
            match step.form:
                case Form.LEAF:
                    self._read(step, memory)
                    self._write(step, memory)
                case Form.CALL:
                    memory = self.run(step.nested[0], memory)
                case Form.CONDITIONAL:
                    self._read(step, memory)
                    memory = _join([self.run(branch, memory.copy()) for branch in step.nested] or [memory])
                case Form.LOOP:
                    memory = self._loop(step, memory)
        return memory

    def _loop(self, step: Step, head: _Memory) -> _Memory:
        condition, body = step.nested
        while True:
            decided = self.run(condition, head.copy())
            self._read(step, decided)
            if step.counted:
                decided = _join([decided, head])
            again = _join([head, self.run(body, decided.copy())])
            if again == head:
                return decided
            head = again

    def _read(self, step: Step, memory: _Memory) -> None:
        for site in step.reads:
            reached = site.begin
            for begin, end, writers in memory.within(site.begin, site.end):
                if begin != reached:
                    break
                reached = end
                for writer in writers:
                    self._unite(site.number, writer)
            if reached != site.end:
                raise NotRewritableError(f"{step.name} ({step.kind}) reads temporary bytes that nothing has written")

    def _write(self, step: Step, memory: _Memory) -> None:
        for number, site in enumerate(step.writes):
            # Kernels are compiled for the overlaps of their slices: what overlaps stays together, the rest stays apart.
            for other in (*step.reads, *step.writes[:number]):
                if _overlap(site, other):
                    self._unite(site.number, other.number)
        for site in step.writes:
            memory.set(site.begin, site.end, frozenset((site.number,)))


def _join(memories: list[_Memory]) -> _Memory:
    joined, *others = memories
    for other in others:
        joined = joined.merged(other, frozenset.union)
    return joined


def _overlap(one: Site, other: Site) -> bool:
    return one.begin < other.end and other.begin < one.end
