"""Offsets for blocks: XLA's best fit and, where that leaves holes, first fit in several orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xla_stalloc.inject.executable.problem import ALIGNMENT, Block
from xla_stalloc.packing import HeapItem, best_fit

_MOST_BLOCKS = 2_000  # beyond, first fit in Python takes longer than it is worth
_MOST_WORK = 500_000  # looks at a neighbour; some tenths of a second
_REPAIRS = 5  # of each order
_GOOD_ENOUGH = 1.0003  # of the bound


def live_bytes(blocks: Sequence[Block]) -> int:
    """The most bytes that are live at once, each block rounded up to the alignment: no packing needs fewer."""
    changes: dict[int, int] = {}
    for block in blocks:
        for first, last in block.lives:
            changes[first] = changes.get(first, 0) + _padded(block)
            changes[last + 1] = changes.get(last + 1, 0) - _padded(block)
    most = live = 0
    for moment in sorted(changes):
        live += changes[moment]
        most = max(most, live)
    return most


def pack(blocks: Sequence[Block]) -> Sequence[int]:
    """Offsets of the blocks, in bytes, the lowest packing that was found."""
    bound = _GOOD_ENOUGH * live_bytes(blocks)
    items = [HeapItem(block.size, block.lives, number) for number, block in enumerate(blocks)]
    best: Sequence[int] = best_fit(items, ALIGNMENT).offsets
    height = _height(blocks, best)
    if height <= bound or len(blocks) > _MOST_BLOCKS:
        return best
    neighbours = _neighbours(blocks)
    tries = _MOST_WORK // (1 + sum(map(len, neighbours)))
    for key in _ORDERS:
        order = sorted(range(len(blocks)), key=lambda number: (key(blocks[number]), number))
        for _ in range(1 + _REPAIRS):
            offsets = _first_fit(blocks, neighbours, order)
            if (found := _height(blocks, offsets)) < height:
                best, height = offsets, found
            tries -= 1
            if height <= bound or tries <= 0:
                return best
            # What ended above the bound goes in sooner; the idea is that of squeaky wheel optimization.
            for place, number in enumerate(order):
                if offsets[number] + _padded(blocks[number]) > bound:
                    order.insert(place // 2, order.pop(place))
    return best


_ORDERS: tuple[Callable[[Block], Any], ...] = (
    lambda block: (block.lives[0].first, -block.size),
    lambda block: (-block.lives[-1].last, -block.size),
    lambda block: -block.size * _duration(block),
    lambda block: (-block.size, block.lives[0].first),
)


def _duration(block: Block) -> int:
    return sum(life.last - life.first + 1 for life in block.lives)


def _padded(block: Block) -> int:
    return -(-block.size // ALIGNMENT) * ALIGNMENT


def _height(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    return max((offset + block.size for offset, block in zip(offsets, blocks, strict=True)), default=0)


def _neighbours(blocks: Sequence[Block]) -> list[list[int]]:
    """For each block the ones that live at some moment of its lives."""
    events = sorted(
        (moment, begins, number)
        for number, block in enumerate(blocks)
        for life in block.lives
        for moment, begins in ((life.first, True), (life.last + 1, False))
    )  # ends before beginnings
    found: list[set[int]] = [set() for _ in blocks]
    alive: set[int] = set()
    for _, begins, number in events:
        if not begins:
            alive.remove(number)
            continue
        found[number] |= alive
        for other in alive:
            found[other].add(number)
        alive.add(number)
    return [sorted(others) for others in found]


def _first_fit(blocks: Sequence[Block], neighbours: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """Every block, in this order, at the lowest offset where it disturbs none that is there."""
    offsets = [-1] * len(blocks)
    for number in order:
        size, offset = _padded(blocks[number]), 0
        taken = sorted((offsets[other], offsets[other] + _padded(blocks[other])) for other in neighbours[number])
        for begin, end in taken:
            if begin < 0:
                continue
            if begin - offset >= size:
                break
            offset = max(offset, end)
        offsets[number] = offset
    return offsets
