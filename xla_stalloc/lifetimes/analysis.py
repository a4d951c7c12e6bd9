"""Live ranges of buffers under a schedule, and where XLA's buffer assignment would put them."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xla_stalloc import _core
from xla_stalloc.hlo import Instruction, Module
from xla_stalloc.lifetimes import program as programs
from xla_stalloc.lifetimes import rules as sharing_rules
from xla_stalloc.lifetimes.alias import InPlace, MustAlias
from xla_stalloc.lifetimes.buffers import Buffer, Kind, applied_buffers, group
from xla_stalloc.lifetimes.combine import end_to_end, partition
from xla_stalloc.lifetimes.dataflow import Dataflow, Value
from xla_stalloc.lifetimes.gpu_sharing import GpuSharing
from xla_stalloc.lifetimes.sharing import Sharing

# Bytes to which XLA aligns every buffer in its temp allocation (cpu_function_runtime.h, gpu_constants.cc).
_ALIGNMENT = {"cpu": 64, "cuda": 256, "rocm": 256}
_DEFAULT_ALIGNMENT = 64
_SHARING: Mapping[str, type[Sharing]] = {"cuda": GpuSharing, "rocm": GpuSharing}

_HEAP = -1  # stands for the heap among the numbers of buffers


@dataclass(frozen=True)
class Assignment:
    """XLA's buffer assignment of one memory space, emulated.

    Attributes:
      temp_bytes: height of the packed temp allocation.
      peak_live_bytes: most bytes live at once inside it; no packing can be lower under this schedule.
      peak_time: when that is first reached, an index into `Lifetimes.schedule` (its length: at the end).
      offsets: bytes from the start of the temp allocation, per value that lies in it.
      reused: buffer -> buffer in whose memory (an argument's or an output's) it lies instead.
      live_at_peak: one value for each block of memory that is live at the peak.
      events: ("alloc" | "free" | "share_with", value, value shared with or None), as in XLA's heap trace.
    """

    temp_bytes: int
    peak_live_bytes: int
    peak_time: int
    offsets: dict[Value, int]
    reused: dict[Buffer, Buffer]
    live_at_peak: tuple[Value, ...]
    events: tuple[tuple[str, Value, Value | None], ...]


class Lifetimes:
    """Who lives when, in a module under a schedule.

    Attributes:
      module: the module.
      values: XLA's dataflow values in the order of their ids.
      buffers: the must-alias sets of values.
      in_place: which operands instructions must write their output to.
      sharing: whether an instruction may write over an operand that dies there.
    """

    def __init__(self, module: Module, like: "Lifetimes | None" = None) -> None:
        """Analyses a module.

        Args:
          module: the module.
          like: lifetimes of another view of it, with equal fusions: what was found out about them is not searched anew.

        Raises:
          UnsupportedModuleError: its call graph is not flat.
        """
        self.module = module
        self._orders: dict[int, Sequence[int]] = {}
        self.dataflow = Dataflow(module)
        self.values: list[Value] = self.dataflow.values
        self.numbering = programs.Numbering(self.dataflow)
        self.in_place: InPlace = like.in_place if like else InPlace()
        self.buffers: list[Buffer] = group(self.dataflow, MustAlias(self.dataflow, self.in_place).sets())
        self.program = programs.build(self.dataflow, self.numbering, self.buffers)
        self.sharing: Sharing = like.sharing if like else _SHARING.get(module.platform, Sharing)(self.in_place)
        self._like = like
        self.alignment = _ALIGNMENT.get(module.platform, _DEFAULT_ALIGNMENT)

    @cached_property
    def reuses(self) -> list[list[int]]:
        """Per value, numbers of the values whose memory it may take over in the heap where they end."""
        return sharing_rules.reuses(self.dataflow, self.numbering, self.buffers, self.sharing)

    @cached_property
    def rules(self) -> _core.SharingRules:
        """What may share memory, for the assignment kernel."""
        return sharing_rules.build(self.dataflow, self.buffers, self._heirs, self.reuses)

    @cached_property
    def ancestors(self) -> list[list[int]]:
        """Per value, numbers of the values whose memory it may take over where they end, aliased ones too."""
        found: list[list[int]] = [[] for _ in self.values]
        for ancestor, heirs in enumerate(self._heirs.heirs):
            for heir in heirs:
                found[heir].append(ancestor)
        return found

    @cached_property
    def _heirs(self) -> sharing_rules.Heirs:
        return sharing_rules.heirs(self.dataflow, self.numbering, self.buffers, self.sharing)

    def numbered_sequences(self, orders: Mapping[int, Sequence[int]]) -> list[list[int]]:
        """Every computation's order, in the kernels' numbers, when `orders` come on top of this object's own."""
        sequences = self.numbering.sequences()
        for computation, order in {**self._orders, **orders}.items():
            sequences[self.numbering.computation[computation]] = [self.numbering.instruction[i] for i in order]
        return sequences

    def under(self, orders: Mapping[int, Sequence[int]]) -> "Lifetimes":
        """The same module's lifetimes when some computations (id -> instruction ids) run in another order."""
        other = copy.copy(self)
        for name in ("ranges", "schedule", "_starts_and_ends"):
            other.__dict__.pop(name, None)
        other._orders = {**self._orders, **orders}
        return other

    @cached_property
    def ranges(self) -> _core.LiveRanges:
        """Live ranges under the schedule."""
        return _core.live_ranges(self.program, self.numbered_sequences({}))

    @cached_property
    def _starts_and_ends(self) -> tuple[list[int], list[int]]:
        return self.ranges.starts, self.ranges.ends

    @cached_property
    def schedule(self) -> list[Instruction]:
        """All computations on one time line: callees run just before their callers."""
        return [self.numbering.instructions[i] for i in self.ranges.schedule]

    def live_range(self, value: Value) -> tuple[int, int]:
        """First and last time (inclusive, indices into `schedule`; its length means the end) at which a value lives."""
        number = self.numbering.value[value.id]
        starts, ends = self._starts_and_ends
        return starts[number], ends[number]

    def assignment(self, memory_space: int = 0) -> Assignment:
        """What XLA's buffer assignment does in a memory space."""
        raw = self._assign(memory_space)
        live_bytes: list[int] = raw.live_bytes
        block: list[int] = raw.block  # each access makes a list anew
        heap_bytes, block_offsets = raw.pack()
        bases, temp_bytes = self._combine(memory_space, raw.host, heap_bytes)
        heap_base = bases.pop(_HEAP, 0)
        offsets = {self.values[v]: heap_base + block_offsets[b] for v, b in enumerate(block) if b >= 0}
        for number, base in bases.items():
            offsets.update(dict.fromkeys(self.buffers[number].values, base))
        events = [
            (("alloc", "free", "share_with")[kind], self.values[value], self.values[other] if other >= 0 else None)
            for kind, value, other in raw.events
        ]
        live: dict[int, Value] = {}
        for kind, value, _ in raw.events[: raw.peak_event + 1]:
            if kind != 1:
                live[block[value]] = self.values[value]
            elif live.get(block[value]) is self.values[value]:
                del live[block[value]]
        return Assignment(
            temp_bytes=temp_bytes,
            peak_live_bytes=max(live_bytes),
            peak_time=live_bytes.index(max(live_bytes)),
            offsets=offsets,
            reused={self.buffers[b]: self.buffers[host] for b, host in enumerate(raw.host) if host >= 0 and host != b},
            live_at_peak=tuple(value for number, value in live.items() if number >= 0),
            events=tuple(events),
        )

    def live_bytes(self, memory_space: int = 0) -> list[int]:
        """Bytes live in the heap at each time of the schedule, and at its end."""
        return self._assign(memory_space).live_bytes

    def _assign(self, memory_space: int) -> _core.Assignment:
        return _core.assign(self.program, self.rules, self.ranges, memory_space, self.alignment)

    def temp_bytes(self, orders: Mapping[int, Sequence[int]], memory_space: int = 0) -> int:
        """Height of the temp allocation under other orders; the quick way to compare candidates."""
        host, heap_bytes = _core.heap_bytes(
            self.program, self.rules, self.numbered_sequences(orders), memory_space, self.alignment
        )
        return self._combine(memory_space, host, heap_bytes)[1]

    def _combine(self, memory_space: int, host: list[int], heap_bytes: int) -> tuple[dict[int, int], int]:
        """Offsets in the temp allocation of the heap and of the tables of tuples, by number of the buffer; its size."""
        allocations: list[int | None] = []  # in XLA's order of creation; None: not temporary
        for number in self._assignment_order:
            if host[number] == number:
                buffer = self.buffers[number]
                is_temporary = buffer.kind is Kind.TUPLE and buffer.memory_space == memory_space
                allocations.append(number if is_temporary else None)
        if heap_bytes:
            allocations.append(_HEAP)
        allocations += [None] * len(self.applied_buffers)
        temporary = partition(allocations)
        sizes = (heap_bytes if number == _HEAP else self.buffers[number].bytes for number in temporary)
        offsets, height = end_to_end(sizes, self.alignment)
        return dict(zip(temporary, offsets, strict=True)), height

    @cached_property
    def _assignment_order(self) -> list[int]:
        return self.rules.order

    @cached_property
    def applied_buffers(self) -> list[Buffer]:
        """The buffers of computations that are applied per element: thread-local ones and constants, without a time."""
        if self._like:
            return self._like.applied_buffers
        # From the messages, so that computations that nothing else asks for stay unread.
        messages = (i for c in self.module.computations for i in c.proto.instructions if i.opcode == "fusion")
        fused = {id for message in messages for id in message.called_computation_ids}
        return applied_buffers(
            c for c in self.module.computations if c.id not in self.dataflow.order and c.id not in fused
        )


def of(module: Module, like: Lifetimes | None = None) -> Lifetimes:
    """Analyses a module; see `Lifetimes`."""
    return Lifetimes(module, like)
