"""Random thunk sequences: right placements pass, and what passes computes the same on every path that was tried."""

from __future__ import annotations

import random

import pytest
from small_executables import disjoint

from xla_stalloc.hlo.schema import cpu_executable_pb2 as schema
from xla_stalloc.inject.executable import side_by_side, thunks
from xla_stalloc.inject.executable.errors import NotRewritableError, RewriteError
from xla_stalloc.inject.executable.pack import pack
from xla_stalloc.inject.executable.problem import layout

WORDS = 8  # of 64 bytes: the memory of a random program


class Sequences:
    """Makes random sequences; what they read was written before, on every path."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def make(self) -> schema.ThunkSequenceProto:
        sequence = schema.ThunkSequenceProto()
        for word in range(WORDS):
            self.set(sequence.thunks.add().kernel_thunk.results_buffers.add().slice, word, word + 1)
        self.fill(sequence, depth=0)
        self.set(sequence.thunks.add().kernel_thunk.arguments_buffers.add().slice, *self.range())
        return sequence

    def fill(self, sequence: schema.ThunkSequenceProto, depth: int) -> None:
        for _ in range(self.rng.randint(1, 6)):
            thunk = sequence.thunks.add()
            kind = self.rng.choice(
                ["while", "conditional", "call"] if depth < 2 and self.rng.random() < 0.3 else ["leaf"]
            )
            if kind == "leaf":
                for _ in range(self.rng.randrange(3)):
                    self.set(thunk.kernel_thunk.arguments_buffers.add().slice, *self.range())
                self.set(thunk.kernel_thunk.results_buffers.add().slice, *self.range())
            elif kind == "while":
                self.set(thunk.while_thunk.cond_buffer, *self.range(1))
                thunk.while_thunk.trip_count.contains_value = self.rng.random() < 0.3
                self.fill(thunk.while_thunk.cond_sequence, depth + 1)
                self.fill(thunk.while_thunk.body_sequence, depth + 1)
            elif kind == "conditional":
                self.set(thunk.conditional_thunk.branch_index_buffer, *self.range(1))
                for _ in range(self.rng.randint(1, 3)):
                    self.fill(thunk.conditional_thunk.branch_sequences.add(), depth + 1)
            else:
                self.fill(thunk.call_thunk.called_sequence, depth + 1)

    def range(self, longest: int = 3) -> tuple[int, int]:
        begin = self.rng.randrange(WORDS)
        return begin, min(WORDS, begin + self.rng.randint(1, longest))

    @staticmethod
    def set(slice_: schema.SliceProto, begin: int, end: int) -> None:
        slice_.offset, slice_.size, slice_.buffer_allocation_index = 64 * begin, 64 * (end - begin), 1


def run(sequence: schema.ThunkSequenceProto, words: int, seed: int) -> list[tuple[object, ...]]:
    """All values that are read, in order, on one random path; a value is the write that it comes from."""
    rng = random.Random(seed)
    memory: list[object] = [None] * words
    seen: list[tuple[object, ...]] = []

    def words_of(slice_: schema.SliceProto) -> slice:
        return slice(slice_.offset // 64, (slice_.offset + slice_.size) // 64)

    def step_through(sequence: schema.ThunkSequenceProto) -> None:
        for thunk in sequence.thunks:
            match thunk.WhichOneof("impl"):
                case "kernel_thunk":
                    for shaped in thunk.kernel_thunk.arguments_buffers:
                        seen.append(tuple(memory[words_of(shaped.slice)]))
                    for shaped in thunk.kernel_thunk.results_buffers:
                        where = words_of(shaped.slice)
                        memory[where] = [(len(seen), number) for number in range(where.stop - where.start)]
                        seen.append(())
                case "while_thunk":
                    loop = thunk.while_thunk
                    for rounds in reversed(range(rng.randint(1, 4))):
                        if not loop.trip_count.contains_value or rng.random() < 0.5:
                            step_through(loop.cond_sequence)
                            seen.append(tuple(memory[words_of(loop.cond_buffer)]))
                        if rounds:
                            step_through(loop.body_sequence)
                case "conditional_thunk":
                    seen.append(tuple(memory[words_of(thunk.conditional_thunk.branch_index_buffer)]))
                    step_through(rng.choice(thunk.conditional_thunk.branch_sequences))
                case "call_thunk":
                    step_through(thunk.call_thunk.called_sequence)

    step_through(sequence)
    return seen


def placed(sequence: schema.ThunkSequenceProto, offsets_of: object) -> tuple[schema.ThunkSequenceProto, int]:
    """The sequence with other offsets for its blocks, and the height."""
    new = schema.ThunkSequenceProto()
    new.CopyFrom(sequence)
    program = thunks.program(new, 1)
    found = layout(program)
    offsets = offsets_of(found.blocks)
    for slice_, block in zip(program.slices, found.block_of, strict=True):
        slice_.offset += offsets[block] - found.blocks[block].begin
    return new, max(offset + block.size for offset, block in zip(offsets, found.blocks, strict=True))


def check(old: schema.ThunkSequenceProto, new: schema.ThunkSequenceProto, height: int) -> None:
    moved = schema.ThunkSequenceProto()
    moved.CopyFrom(new)
    side_by_side.check(old, moved, 1, height)


@pytest.mark.parametrize("seed", range(150))
def test_right_placements_pass_and_compute_the_same(seed):
    old = Sequences(seed).make()
    for packer in (pack, disjoint):
        new, height = placed(old, packer)
        check(old, new, height)
        for path in range(5):
            assert run(old, WORDS, path) == run(new, height // 64, path)


def test_what_passes_computes_the_same_however_it_was_placed():
    verdicts = {True: 0, False: 0}
    for seed in range(400):
        rng = random.Random(seed)
        old = Sequences(seed).make()
        new, height = placed(old, lambda blocks, rng=rng: [64 * rng.randrange(3 * WORDS) for _ in blocks])
        try:
            check(old, new, height)
        except RewriteError:
            verdicts[False] += 1
            continue
        verdicts[True] += 1
        for path in range(20):
            assert run(old, WORDS, path) == run(new, height // 64, path)
    assert min(verdicts.values()) > 20


def test_reading_what_was_never_written_is_refused():
    sequence = schema.ThunkSequenceProto()
    Sequences.set(sequence.thunks.add().kernel_thunk.arguments_buffers.add().slice, 0, 1)
    with pytest.raises(NotRewritableError, match="nothing has written"):
        layout(thunks.program(sequence, 1))
