"""What an order must respect beyond operands and control dependencies.

XLA checks those two. Nothing checks the rest: a module whose order breaks it compiles and gives wrong numbers, or
hangs a job in which one process waits for another's collective.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from xla_stalloc.hlo import Computation, Instruction, Module
from xla_stalloc.lifetimes import Lifetimes, UnsupportedModuleError
from xla_stalloc.lifetimes.dataflow import sequential_callees
from xla_stalloc.lifetimes.program import uses

_COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
_EFFECTS = frozenset(("infeed", "outfeed", "recv", "recv-done", "rng-get-and-update-state", "send", "send-done"))
_HOST_MEMORY_SPACE = 5

Edge = tuple[Instruction, Instruction]
NodeOf = Callable[[Instruction], int | None]


def is_pinned(instruction: Instruction, collectives: bool) -> bool:
    """Whether the instruction, or one that it calls, must keep its place among all such instructions.

    Sends, receives, host copies and side effects, because someone outside sees them; `collectives` too, where other
    processes must start them in the same order.
    """
    opcode = instruction.opcode
    if opcode in _EFFECTS or instruction.has_side_effect or (collectives and opcode.startswith(_COLLECTIVES)):
        return True
    if opcode in ("copy-start", "copy-done") and _touches_host(instruction):
        return True
    inner = (i for called in sequential_callees(instruction) for i in called.instructions)
    return any(is_pinned(i, collectives) for i in inner)


def _touches_host(instruction: Instruction) -> bool:
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    return any(part.memory_space == _HOST_MEMORY_SPACE for shape in shapes for _, part in shape.subshapes())


def pinned_order(sequence: Sequence[Instruction], collectives: bool) -> Iterator[Edge]:
    """Keeps the pinned instructions of a sequence in their order."""
    last: Instruction | None = None
    for instruction in sequence:
        if is_pinned(instruction, collectives):
            if last is not None:
                yield last, instruction
            last = instruction


def keeps_windows(module: Module) -> bool:
    """Whether what XLA put between an asynchronous start and its done must stay there.

    On GPUs there is a model of what hides what (cost.py), so an order may hide a transfer behind something else.
    """
    return module.platform not in ("cuda", "rocm")


def async_windows(sequence: Sequence[Instruction]) -> Iterator[Edge]:
    """Keeps what runs between an asynchronous start and its done there: it hides the transfer."""
    place = {instruction.id: step for step, instruction in enumerate(sequence)}
    for start in sequence:
        if start.opcode.endswith("-start"):
            for done in start.users:
                if done.opcode.endswith("-done"):
                    for inside in sequence[place[start.id] + 1 : place[done.id]]:
                        yield start, inside
                        yield inside, done


def write_after_read(lifetimes: Lifetimes, computation: Computation, node_of: NodeOf) -> Iterator[tuple[int, int]]:
    """Edges between nodes that keep a value from being overwritten, in memory that it must share, before its last read.

    Copy insertion guarantees this for the schedule that it saw, sometimes without leaving a control dependency.

    Raises:
      UnsupportedModuleError: the module's own schedule overwrites a value before it is read.
    """
    callers = lifetimes.dataflow.callers
    for buffer in lifetimes.buffers:
        if len(buffer.values) < 2:
            continue
        lives = sorted((*lifetimes.live_range(value), value.id, value) for value in buffer.values)
        for (*_, earlier), (*_, later) in pairwise(lives):
            writer = node_of(later.instruction)
            if writer is None:
                continue
            # What an asynchronous operation writes over its own operand, it does not read when it is done.
            start = callers.get(later.instruction.computation.id)
            readers = [node_of(user) for user, _, _ in uses(earlier) if start is None or _awaited(user) is not start]
            for reader in (node_of(earlier.instruction), *readers):
                if reader is None or reader == writer:
                    continue
                if reader > writer:
                    raise UnsupportedModuleError(
                        f"{lifetimes.module.source}: in {computation.name!r}, {later.instruction.name!r} overwrites "
                        f"{earlier.instruction.name!r} before its last read; its memory is left to XLA"
                    )
                yield reader, writer


def _awaited(instruction: Instruction) -> Instruction | None:
    """The async-start that an async-update or async-done waits for."""
    while instruction.opcode in ("async-update", "async-done"):
        instruction = instruction.operands[0]
    return instruction if instruction.opcode == "async-start" else None
