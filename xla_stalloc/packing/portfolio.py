"""The solvers in turn, for buffers that live once and may lie anywhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xla_stalloc import _core
from xla_stalloc._core import Sections, Verdict
from xla_stalloc.packing.blocks import Blocks
from xla_stalloc.packing.first_fit import DEFAULT_WORK
from xla_stalloc.packing.incumbent import Incumbent
from xla_stalloc.packing.ordered import Orders
from xla_stalloc.packing.problem import MOST_BYTES, max_load
from xla_stalloc.packing.sweep import Sweeps
from xla_stalloc.packing.tight import MOST_ITEMS, UNLIMITED, TightPacker

_FEW = 100_000  # items for which the repair of an order takes less than a second or so
_MOST_ENTRIES = 16_000_000  # of the lists of an exact search: for each section, the items that are alive
_CLOSE = 64  # parts of the bound; sweeps that come within one of them are what the problem wants
_TRIES = 150  # sweeps, of milliseconds each
_TURNS = {"sweep": 8, "repaired first fit": 1}  # attempts in each round
_WORK = 20_000_000  # of an exact search in each round, some tenths of a second


def pack(blocks: Blocks, incumbent: Incumbent, capacity: int | None, seed: int, rounds: int | None) -> int:
    """Improve on the incumbent until it is done; the best lower bound that was proven, in bytes.

    Fast solvers come first: a sweep takes milliseconds where an order takes tenths of seconds.

    Args:
        blocks: plain ones.
        incumbent: gets the packings.
        capacity: bytes; None if lower is always better.
        seed: of everything random.
        rounds: of improvement at most.
    """
    coarsest = math.lcm(*set(blocks.alignment.tolist()))
    padded = -(-blocks.size // coarsest) * coarsest
    if int(padded.astype(np.float64).sum()) >= MOST_BYTES:  # alignments that hardly divide each other
        orders = Orders(Sections(blocks.lower, blocks.upper, blocks.size), blocks.size, blocks.alignment, seed)
        incumbent.take(orders.straight(orders.plain(), MOST_BYTES, incumbent), "first fit")
        return blocks.bound
    bound = blocks.bound
    if (blocks.alignment == coarsest).all():
        bound = max(bound, max_load(blocks.lower, blocks.upper, padded) - int((padded - blocks.size).max(initial=0)))
    incumbent.target = max(incumbent.target, bound)
    sections = Sections(blocks.lower, blocks.upper, padded)
    sweeps = Sweeps(sections, coarsest, seed)
    unpadded = sections if coarsest == 1 else Sections(blocks.lower, blocks.upper, blocks.size)
    orders = Orders(unpadded, blocks.size, blocks.alignment, seed)
    small = len(padded) <= MOST_ITEMS and int((sections.last - sections.first).sum()) <= _MOST_ENTRIES
    incumbent.take(sweeps.online(incumbent), "online fit")
    incumbent.take(orders.straight(itertools.islice(orders.good(), 2), incumbent.target, incumbent), "first fit")
    incumbent.take(sweeps.under_ceilings(incumbent), "sweep")
    random_sweeps = sweeps.at_random(incumbent)
    if not small and incumbent.height - incumbent.target < incumbent.target // _CLOSE:  # a trace of training
        incumbent.take(orders.shaken(incumbent), "shaken sweep")
        incumbent.take(itertools.islice(random_sweeps, _TRIES), "sweep")
    elif len(padded) <= _FEW:
        incumbent.take(orders.repaired(incumbent, range(1)), "repaired first fit")
    incumbent.take(_best_fit(blocks, coarsest, incumbent), "best fit")
    incumbent.take(orders.straight(orders.plain(), MOST_BYTES, incumbent), "first fit")
    if small and coarsest == blocks.alignment.max(initial=1):
        incumbent.take(_neighbours(blocks, coarsest, incumbent, seed), "first fit")
        proofs = [bound]
        incumbent.take(_exact(blocks, incumbent, capacity, seed, rounds, proofs), "exact search")
        return max(proofs)
    incumbent.take(orders.shaken(incumbent), "shaken " + incumbent.solver.removeprefix("shaken "))
    solvers = {"sweep": random_sweeps, "repaired first fit": orders.squeezed(incumbent)}
    round_ = 0
    while not incumbent.done and round_ != rounds:
        round_ += 1
        for name, solver in solvers.items():
            incumbent.take(itertools.islice(solver, _TURNS[name]), name)
    return bound


def _best_fit(blocks: Blocks, alignment: int, incumbent: Incumbent) -> Iterator[NDArray[np.int64]]:
    """XLA's packing, given up once it is no lower than what there is."""
    numbers = np.arange(len(blocks.size) + 1)
    arguments = (blocks.size, numbers, blocks.lower, blocks.upper - 1, numbers[:-1], alignment)
    height, offsets = _core.best_fit(*arguments, limit=incumbent.height, seconds=incumbent.left)
    if height < incumbent.height:
        yield offsets


def _neighbours(blocks: Blocks, alignment: int, incumbent: Incumbent, seed: int) -> Iterator[NDArray[np.int64]]:
    """Many first fits at the cost of one: few items, so each knows its neighbours in time."""
    numbers = np.arange(len(blocks.size) + 1)
    arguments = (blocks.size, numbers, blocks.lower, blocks.upper - 1, alignment)
    _, offsets = _core.first_fit(*arguments, target=incumbent.target, work=DEFAULT_WORK // 10, seed=seed)
    if len(offsets):
        yield offsets


def _exact(
    blocks: Blocks, incumbent: Incumbent, capacity: int | None, seed: int, rounds: int | None, proofs: list[int]
) -> Iterator[NDArray[np.int64]]:
    """Exact searches for the capacity, or for less and less; what they prove goes into `proofs`."""
    packer = TightPacker(blocks.lower, blocks.upper, blocks.size, blocks.alignment, seed)
    work = UNLIMITED if rounds is None else rounds * _WORK
    if capacity is None:
        for lowest in packer.descend(work=work, seconds=incumbent.left):
            proofs.append(lowest.lower_bound)
            incumbent.target = max(incumbent.target, lowest.lower_bound)
            yield lowest.offsets
        return
    fit = packer.fit(capacity, work, seconds=incumbent.left)
    if fit.offsets is not None:
        yield fit.offsets
    elif fit.verdict is Verdict.INFEASIBLE:
        proofs.append(capacity + 1)
