"""Whether the programs of a job fit beside their state into a GPU's memory pool, and which settings would let them.

XLA takes ``XLA_PYTHON_CLIENT_MEM_FRACTION`` of the card as its pool; NCCL, cuBLAS and contexts live outside of it. Of
the temporaries of a program, the latency-hiding scheduler takes a share: ``xla_gpu_memory_limit_slop_factor`` per cent
of what it believes to be there. So the fraction is bounded from below by what the programs need and from above by what
lies outside, the factor from above by what the pool has left beside the state. Everything here is arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xla_stalloc.report.sizes import gib

Allocator = Literal["bfc", "cuda_async", "vmm", "platform"]
Verdict = Literal["fits", "marginal", "refused"]

ALLOCATORS: tuple[Allocator, ...] = ("bfc", "cuda_async", "vmm", "platform")
MARGINAL = 0.02
"""Of the pool's limit: closer to it than this, a run may die of what a plan does not see.

In the public case of marin-community/marin PR#8490 a margin of 1.8 % killed 2 of 176 tasks, and one of 4.6 % none. With
`cuda_async`, 1.5 % above the limit was once fine and 4.1 % above aborted, so this is the width on either side."""
_DRIVER_RESERVE = 0.07
"""Of the card, to stay free beside a `cuda_async` pool: there, a block that is freed and formed anew was not found with
6.4 % of the card free, and was with 8.4 % (same case)."""


@dataclass(frozen=True, slots=True)
class Program:
    """What one program asks of the pool at once, on top of the resident state.

    Attributes:
        name: for messages.
        block_bytes: its one block of temporaries as it was compiled; with `scales`, at a factor of 100 %.
        scales: whether the block follows the factor, as it does when the scheduler fills its memory limit.
    """

    name: str
    block_bytes: int
    scales: bool = False

    def block(self, factor: float) -> int:
        """Bytes of the block at a factor in per cent."""
        return round(self.block_bytes * factor / 100) if self.scales else self.block_bytes


@dataclass(frozen=True, slots=True)
class Card:
    """A card and how its memory is handed out.

    Attributes:
        bytes: of the card.
        allocator: ``bfc`` and ``vmm``: the limit is a hard one. ``cuda_async``: it is the release threshold of CUDA's
            stream-ordered pool, above which memory goes back to the driver between steps. ``platform``: no pool.
        outside_bytes: what libraries hold outside of the pool.
        reserve_bytes: to stay free outside of the pool; None for what the allocator is known to need.
    """

    bytes: int
    allocator: Allocator
    outside_bytes: int = 0
    reserve_bytes: int | None = None

    @property
    def reserve(self) -> int:
        """Bytes to stay free outside of the pool."""
        if self.reserve_bytes is not None:
            return self.reserve_bytes
        return round(self.bytes * _DRIVER_RESERVE) if self.allocator == "cuda_async" else 0

    @property
    def room(self) -> int:
        """Bytes that a pool may have at most."""
        return self.bytes - self.outside_bytes - self.reserve

    def limit(self, fraction: float) -> int:
        """Bytes of the pool at a fraction; without a pool, all the room there is."""
        return self.room if self.allocator == "platform" else round(self.bytes * fraction)


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer.

    Attributes:
        verdict: ``fits``, ``marginal`` (no refusal, but some margin is too thin to rely on) or ``refused``.
        fraction: asked about; None without a pool.
        factor: asked about, in per cent.
        limit_bytes: of the pool.
        resident_bytes: state that stays between steps.
        outside_bytes: held outside of the pool.
        reserve_bytes: to stay free outside of the pool.
        block_bytes: largest block that a program asks for.
        block_of: the program that asks for it.
        pool_margin_bytes: left in the pool with state and largest block in it; negative: missing.
        card_margin_bytes: left of the card beside a full pool, what lies outside and the reserve; negative: missing.
        fractions: lowest and highest that are feasible with this factor; None: there is none.
        factors: lowest and highest that are feasible with this fraction, up to 100 %; None: there is none, or no
            program follows the factor.
        reasons: for every refusal, and for every margin that is thin.
    """

    verdict: Verdict
    fraction: float | None
    factor: float
    limit_bytes: int
    resident_bytes: int
    outside_bytes: int
    reserve_bytes: int
    block_bytes: int
    block_of: str
    pool_margin_bytes: int
    card_margin_bytes: int
    fractions: tuple[float, float] | None
    factors: tuple[float, float] | None
    reasons: tuple[str, ...]


def fit(card: Card, programs: Sequence[Program], resident_bytes: int, *, fraction: float, factor: float) -> Fit:
    """Whether state and programs fit at a fraction of the card and a factor in per cent, and at which others they do.

    Raises:
        ValueError: there is no program, or a figure makes no sense.
    """
    _check(card, programs, resident_bytes, fraction, factor)
    largest = max(programs, key=lambda program: program.block(factor))
    block = largest.block(factor)
    limit = card.limit(fraction)
    pool_margin = limit - resident_bytes - block
    card_margin = card.room - limit
    thin = MARGINAL * limit
    refusals, warnings = [], []
    need = (
        f"state of {gib(resident_bytes)} and the block of {largest.name}, {gib(block)}, need "
        f"{gib(resident_bytes + block)} of a limit of {gib(limit)}"
    )
    # CUDA's pool may grow above its limit, at the price of what it then gives back after every step.
    tolerated = thin if card.allocator == "cuda_async" else 0
    if pool_margin < -tolerated:
        refusals.append(f"pool: {need}, {gib(-pool_margin)} too much{_consequence(card)}")
    elif pool_margin < thin:
        warnings.append(f"pool: {need}; the margin of {gib(pool_margin)} is within {MARGINAL:.0%} of the limit")
    if card_margin < 0:
        kept = f" and {gib(card.reserve)} have to stay free for the driver" if card.reserve else ""
        refusals.append(
            f"non-pool bytes: beside a pool of {gib(limit)} the card of {gib(card.bytes)} has {gib(card.bytes - limit)}"
            f", where libraries outside of the pool hold {gib(card.outside_bytes)}{kept}: {gib(-card_margin)} missing"
        )
    return Fit(
        verdict="refused" if refusals else "marginal" if warnings else "fits",
        fraction=None if card.allocator == "platform" else fraction,
        factor=factor,
        limit_bytes=limit,
        resident_bytes=resident_bytes,
        outside_bytes=card.outside_bytes,
        reserve_bytes=card.reserve,
        block_bytes=block,
        block_of=largest.name,
        pool_margin_bytes=pool_margin,
        card_margin_bytes=card_margin,
        fractions=_fractions(card, resident_bytes + block),
        factors=_factors(programs, limit - resident_bytes, feasible=card_margin >= 0),
        reasons=(*refusals, *warnings),
    )


def _consequence(card: Card) -> str:
    if card.allocator == "cuda_async":
        return "; above its release threshold the pool gives the block back after every step and has to form it anew"
    return ""


def _fractions(card: Card, needed: int) -> tuple[float, float] | None:
    """Fractions whose pool holds what is needed and leaves the rest of the card its bytes."""
    low, high = needed / card.bytes, card.room / card.bytes
    if card.allocator == "platform":
        return None
    return (low, high) if low <= high else None


def _factors(programs: Sequence[Program], room: int, *, feasible: bool) -> tuple[float, float] | None:
    """Factors above 0 whose blocks fit into the room."""
    scaling = [program.block_bytes for program in programs if program.scales and program.block_bytes]
    fixed = max((program.block_bytes for program in programs if not program.scales), default=0)
    if not feasible or not scaling or fixed > room or room <= 0:
        return None
    return 0.0, min(100.0, 100 * room / max(scaling))


def _check(card: Card, programs: Sequence[Program], resident_bytes: int, fraction: float, factor: float) -> None:
    if not programs:
        raise ValueError("no program is given; what has to fit is their largest block")
    if card.bytes <= 0:
        raise ValueError(f"a card of {card.bytes} bytes has no room")
    if not 0 < fraction <= 1:
        raise ValueError(f"the fraction is {fraction:g}; it is a part of the card, above 0 and at most 1")
    if not 0 < factor < float("inf"):
        raise ValueError(f"the factor is {factor:g}; it is a percentage above 0")
    held = min(card.outside_bytes, card.reserve, resident_bytes, *(program.block_bytes for program in programs))
    if held < 0:
        raise ValueError(f"a size of {held} bytes is below 0")
