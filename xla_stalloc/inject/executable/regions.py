"""Disjoint pieces of memory, each with what is known about it."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Regions(Generic[T]):
    """Maps bytes to tags; pieces are half-open ranges in ascending order."""

    def __init__(self) -> None:
        """No byte has a tag."""
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._tags: list[T] = []

    def __iter__(self) -> Iterator[tuple[int, int, T]]:
        """The pieces: begin, end, tag."""
        return zip(self._begins, self._ends, self._tags, strict=True)

    def __eq__(self, other: object) -> bool:
        """Whether the pieces are the same."""
        return isinstance(other, Regions) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Regions[T]:
        """Another one that starts out the same."""
        twin: Regions[T] = Regions()
        twin._begins, twin._ends, twin._tags = self._begins.copy(), self._ends.copy(), self._tags.copy()
        return twin

    def within(self, begin: int, end: int) -> list[tuple[int, int, T]]:
        """The pieces in a range, cut to it."""
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        return [(max(self._begins[i], begin), min(self._ends[i], end), self._tags[i]) for i in range(first, last)]

    def clear(self, begin: int, end: int) -> None:
        """Takes the tags of a range away."""
        self._replace(begin, end, [], [], [])

    def set(self, begin: int, end: int, tag: T) -> None:
        """Gives a range one tag."""
        self._replace(begin, end, [begin], [end], [tag])

    def _replace(self, begin: int, end: int, begins: list[int], ends: list[int], tags: list[T]) -> None:
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        if first < last:
            if self._begins[first] < begin:
                begins, ends, tags = [self._begins[first], *begins], [begin, *ends], [self._tags[first], *tags]
            if self._ends[last - 1] > end:
                begins, ends, tags = [*begins, end], [*ends, self._ends[last - 1]], [*tags, self._tags[last - 1]]
        self._begins[first:last], self._ends[first:last], self._tags[first:last] = begins, ends, tags

    def merged(self, other: Regions[T], both: Callable[[T, T], T]) -> Regions[T]:
        """The bytes of either, with `both` of the tags where there are two; equal neighbours become one piece."""
        cuts = sorted({*self._begins, *self._ends, *other._begins, *other._ends})
        result: Regions[T] = Regions()
        i = j = 0
        for begin, end in itertools.pairwise(cuts):
            while i < len(self._ends) and self._ends[i] <= begin:
                i += 1
            while j < len(other._ends) and other._ends[j] <= begin:
                j += 1
            here = i < len(self._begins) and self._begins[i] <= begin
            there = j < len(other._begins) and other._begins[j] <= begin
            if here and there:
                tag = self._tags[i] if self._tags[i] == other._tags[j] else both(self._tags[i], other._tags[j])
            elif here or there:
                tag = self._tags[i] if here else other._tags[j]
            else:
                continue
            result._append(begin, end, tag)
        return result

    def _append(self, begin: int, end: int, tag: T) -> None:
        if self._ends and self._ends[-1] == begin and self._tags[-1] == tag:
            self._ends[-1] = end
        else:
            self._begins.append(begin)
            self._ends.append(end)
            self._tags.append(tag)
