"""The arena against a naive account of what is live, and its debug mode against programs that misbehave."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from xla_stalloc._core import Arena, ArenaExecution, ArenaInconsistency
from xla_stalloc.plan.job import JobPlan, TraceBuilder, plan_job
from xla_stalloc.plan.job.trace import program_key

PAGE = 4096


def _plan(sizes: list[list[int]]) -> JobPlan:
    """Executions of programs "0", "1", ... in turns, each with these blocks, which live until its end."""
    job = TraceBuilder()
    for _ in range(3):
        for program, blocks in enumerate(sizes):
            job.begin(str(program))
            for request in [job.request(bytes) for bytes in blocks]:
                job.release(request)
    return plan_job(job.build())


class ArenaMachine(RuleBasedStateMachine):
    """Any sequence of executions, known or not; every block must be of its own, aligned, and of the right size."""

    @initialize(sizes=st.lists(st.lists(st.integers(1, 20_000), min_size=1, max_size=4), min_size=1, max_size=3))
    def start(self, sizes: list[list[int]]) -> None:
        self.sizes = sizes
        self.arena: Arena = _plan(sizes).arena(shadow=True, granularity=PAGE, idle_fraction=0.0)
        self.live: dict[int, int] = {}
        self.peak = 0
        self.execution: ArenaExecution = self.arena.begin(program_key("0"))
        self.requests = 0

    @rule(program=st.integers(0, 4))
    def begin(self, program: int) -> None:
        self.execution = self.arena.begin(program_key(str(program)))
        assert (self.execution.slot is not None) == (program < len(self.sizes))

    @rule(index=st.integers(0, 5), bytes=st.integers(0, 30_000), alignment=st.sampled_from([1, 64, 256, 4096]))
    def request(self, index: int, bytes: int, alignment: int) -> None:
        offset = self.arena.request(self.execution, index, bytes, alignment)
        assert offset is not None
        assert offset % max(alignment, 64) == 0
        for other, size in self.live.items():
            assert offset >= other + size or other >= offset + max(bytes, 1)
        self.live[offset] = bytes
        self.requests += 1
        self.peak = max(self.peak, sum(self.live.values()))

    @precondition(lambda self: self.live)
    @rule(choice=st.randoms(use_true_random=False))
    def release(self, choice: object) -> None:
        offset = choice.choice(sorted(self.live))  # type: ignore[attr-defined]
        self.arena.release(offset)
        del self.live[offset]

    @rule()
    def trim(self) -> None:
        self.arena.trim()
        idle = self.arena.statistics().reserved_bytes - sum(self.live.values())
        # Only pages stay that a live block shares, and the one in which the planned region ends.
        assert idle <= 2 * PAGE * len(self.live) + PAGE + sum(map(sum, self.sizes))

    @invariant()
    def the_account_is_right(self) -> None:
        if not hasattr(self, "arena"):
            return
        now = self.arena.statistics()
        assert now.in_use_bytes == sum(self.live.values())
        assert now.live_blocks == len(self.live)
        assert now.peak_in_use_bytes == self.peak
        assert now.requests == self.requests == now.hits + now.in_gaps + now.in_overflow
        assert now.reserved_bytes >= now.in_use_bytes


TestArenaMachine = ArenaMachine.TestCase
TestArenaMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_full_device_says_so_and_serves_again_when_something_went() -> None:
    arena = _plan([[PAGE]]).arena(capacity=8 * PAGE)
    unknown = arena.begin(7)
    first = arena.request(unknown, 0, 6 * PAGE)
    assert first is not None
    assert arena.request(unknown, 1, 3 * PAGE) is None
    message = arena.why_not(3 * PAGE)
    assert f"{3 * PAGE} bytes" in message
    assert f"{6 * PAGE} bytes are in use in 1 blocks" in message
    arena.release(first)
    assert arena.request(unknown, 1, 3 * PAGE) is not None
    assert arena.statistics().failures == 1


def test_an_unknown_program_uses_what_the_plan_leaves_idle() -> None:
    arena = _plan([[100 * PAGE], [10 * PAGE], [10 * PAGE]]).arena(pipeline=2, shadow=True)
    arena.begin(program_key("0"))
    offset = arena.request(arena.begin(99), 0, 50 * PAGE)
    assert offset is not None
    assert offset < 100 * PAGE  # inside the region, though beside what the next two executions want
    assert arena.statistics().in_gaps == 1


@pytest.mark.parametrize("twice", [True, False])
def test_a_block_that_is_not_live_cannot_be_released(twice: bool) -> None:
    arena = _plan([[100]]).arena()
    offset = arena.request(arena.begin(program_key("0")), 0, 100)
    assert offset is not None
    if twice:
        arena.release(offset)
    with pytest.raises(ArenaInconsistency, match="none is live"):
        arena.release(offset if twice else offset + 64)


def test_a_write_behind_a_block_is_found_when_it_is_released() -> None:
    arena = _plan([[100]]).arena(addresses=1 << 20, memory=True, red_zone=64)
    offset = arena.request(arena.begin(99), 0, 100)
    assert offset is not None
    ctypes.memset(arena.base + offset, 1, 100)
    arena.release(offset)
    offset = arena.request(arena.begin(99), 0, 100)
    assert offset is not None
    ctypes.memset(arena.base + offset, 1, 101)
    with pytest.raises(ArenaInconsistency, match="byte 100 of the block"):
        arena.release(offset)


def test_released_memory_is_poisoned_and_idle_memory_is_given_back() -> None:
    arena = _plan([[100]]).arena(addresses=1 << 24, memory=True, poison=True)
    offset = arena.request(arena.begin(99), 0, 64 * PAGE)
    assert offset is not None
    ctypes.memset(arena.base + offset, 1, 64 * PAGE)
    arena.release(offset)
    assert ctypes.string_at(arena.base + offset, 64 * PAGE) == b"\xdb" * (64 * PAGE)
    assert arena.trim() >= 63 * PAGE
    assert arena.statistics().reserved_bytes <= PAGE
    inside = (offset + PAGE - 1) // PAGE * PAGE
    assert ctypes.string_at(arena.base + inside, PAGE) == b"\0" * PAGE  # the system took the page


def test_what_is_reserved_stays_near_what_lives_though_the_plan_knows_nothing() -> None:
    """Random sizes and lives: pages between blocks are given back before new ones are taken."""
    random = np.random.default_rng(0)
    arena = _plan([[PAGE]]).arena(shadow=True, granularity=PAGE)
    unknown = arena.begin(99)
    live: list[int] = []
    for _ in range(20_000):
        if len(live) > 200:
            arena.release(live.pop(int(random.integers(len(live)))))
        offset = arena.request(unknown, 0, int(2 ** random.uniform(12, 22)))
        assert offset is not None
        live.append(offset)
    served = arena.statistics()
    assert served.peak_reserved_bytes <= 1.05 * served.peak_in_use_bytes
    for offset in live:
        arena.release(offset)
    arena.trim()
    assert arena.statistics().reserved_bytes == arena.statistics().in_use_bytes == 0
