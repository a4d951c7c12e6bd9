"""When each group of slices is needed: liveness of bytes, backward over the thunks.

A byte is live where some path leads to a read of it before the next write. Leaf thunks are the moments of time: a group
occupies its memory at a thunk that touches it, and at one across which some byte of it is live. Within loops and
branches that leaves holes, in which other groups may have the memory.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from xla_stalloc.inject.executable.errors import NotRewritableError
from xla_stalloc.inject.executable.regions import Regions
from xla_stalloc.inject.executable.thunks import Form, Program, Step, count_leaves

_Live = Regions[int]  # the group that each live byte belongs to


class Life(NamedTuple):
    """Leaf thunks, numbered in the order of the sequence, from the first to the last one at which a group is there."""

    first: int
    last: int


def lives(program: Program, groups: Sequence[int]) -> list[list[Life]]:
    """The lives of each group, ascending and apart.

    Args:
        program: The thunks.
        groups: Of each site, as `aliases.groups` numbers them.

    Raises:
        NotRewritableError: A byte would belong to two groups at once.
    """
    analysis = _Analysis(groups)
    analysis.run(program.steps, 0, Regions())
    return [_merged(found) for found in analysis.lives]


def _merged(lives: list[Life]) -> list[Life]:
    merged: list[Life] = []
    for life in sorted(lives):
        if merged and life.first <= merged[-1].last + 1:
            merged[-1] = Life(merged[-1].first, max(merged[-1].last, life.last))
        else:
            merged.append(life)
    return merged


class _Analysis:
    """Runs steps backward, and collects lives."""

    def __init__(self, groups: Sequence[int]) -> None:
        self.groups = groups
        self.lives: list[list[Life]] = [[] for _ in range(max(groups, default=-1) + 1)]

    def run(self, steps: Sequence[Step], first: int, live: _Live) -> _Live:
        """What is live before the steps, of which the first leaf has the number `first`; `live` is changed."""
        end = first + count_leaves(steps)
        segment = _Segment(self, live, end)
        for step in reversed(steps):
            end -= step.leaves
            if step.form is Form.LEAF:
                segment.leaf(step, end)
                continue
            segment.close(end + step.leaves)
            segment = _Segment(self, self._nested(step, end, segment.live), end)
        segment.close(first)
        return segment.live

    def _nested(self, step: Step, first: int, live: _Live) -> _Live:
        match step.form:
            case Form.CALL:
                return self.run(step.nested[0], first, live)
            case Form.CONDITIONAL:
                needed: list[_Live] = []
                for branch in step.nested:
                    needed.append(self.run(branch, first, live.copy()))
                    first += count_leaves(branch)
                return self._before_reads(step, functools.reduce(_either, needed, needed.pop()) if needed else live)
        return self._loop(step, first, live)

    def _loop(self, step: Step, first: int, after: _Live) -> _Live:
        condition, body = step.nested
        middle = first + count_leaves(condition)
        decided = after
        while True:
            head = self.run(condition, first, self._before_reads(step, decided.copy()))
            if step.counted:
                head = _either(head, decided)
            again = _either(after, self.run(body, middle, head.copy()))
            if again == decided:
                return head
            decided = again

    def _before_reads(self, step: Step, live: _Live) -> _Live:
        for site in step.reads:
            _only(self.groups[site.number], live.within(site.begin, site.end))
            live.set(site.begin, site.end, self.groups[site.number])
        return live


class _Segment:
    """Leaf thunks without control flow between them, from the last to the first."""

    def __init__(self, analysis: _Analysis, live: _Live, end: int) -> None:
        self.live = live
        self._analysis = analysis
        self._last: dict[int, int] = {}  # of each group that is there, the leaf up to which it lives
        self._bytes: dict[int, int] = {}  # of each group, how many are live
        for begin, stop, group in live:
            self._last[group] = end - 1
            self._bytes[group] = self._bytes.get(group, 0) + stop - begin

    def leaf(self, step: Step, number: int) -> None:
        groups, live, count = self._analysis.groups, self.live, self._bytes
        for site in step.writes:
            group = groups[site.number]
            self._last.setdefault(group, number)
            count[group] = count.get(group, 0) - _only(group, live.within(site.begin, site.end))
            live.clear(site.begin, site.end)
        for site in step.reads:
            group = groups[site.number]
            self._last.setdefault(group, number)
            found = _only(group, live.within(site.begin, site.end))
            count[group] = count.get(group, 0) + site.end - site.begin - found
            live.set(site.begin, site.end, group)
        for site in (*step.writes, *step.reads):
            group = groups[site.number]
            if not count[group] and group in self._last:
                self._analysis.lives[group].append(Life(number, self._last.pop(group)))

    def close(self, first: int) -> None:
        """Ends the segment at its first leaf; there may be none."""
        for group, last in self._last.items():
            if first <= last:
                self._analysis.lives[group].append(Life(first, last))


def _either(one: _Live, other: _Live) -> _Live:
    return one.merged(other, _same)


def _only(group: int, pieces: list[tuple[int, int, int]]) -> int:
    """How many bytes the pieces have, all of which must belong to the group."""
    for _, _, other in pieces:
        _same(group, other)
    return sum(end - begin for begin, end, _ in pieces)


def _same(one: int, other: int) -> int:
    if one != other:
        raise NotRewritableError("temporary bytes would belong to two values at once")
    return one
