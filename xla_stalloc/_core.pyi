"""C++ kernels of packing and scheduling. Arrays are one-dimensional and contiguous; results are new int64 arrays."""

import enum

import numpy as np
from numpy.typing import NDArray

_Int64 = NDArray[np.int64]
_Bool = NDArray[np.bool_]

class Graph:
    """A scheduling graph in the kernels' own form; see ``xla_stalloc.scheduling.Graph``, which validates it."""

    def __init__(
        self,
        predecessor_offsets: _Int64,
        predecessors: _Int64,
        lump_bytes: _Int64,
        buffer_bytes: _Int64,
        touch_offsets: _Int64,
        touches: _Int64,
        reuse_offsets: _Int64,
        reuses: _Int64,
        live_in: _Bool,
        live_out: _Bool,
    ) -> None: ...

class ChildOrder(enum.Enum):
    """In which order a depth-first search visits what a node needs."""

    EARLIEST_FIRST = 0
    LATEST_FIRST = 1
    SHALLOWEST_FIRST = 2
    HILL_VALLEY = 3

def memory_profile(graph: Graph, order: _Int64) -> _Int64:
    """Bytes live while each node of the order runs."""

def depth_first(graph: Graph, child_order: ChildOrder) -> _Int64:
    """Post-order from the sinks."""

def tighten(graph: Graph, order: _Int64) -> _Int64:
    """The same order, but what takes memory runs as late as it can and what frees memory as early as it can."""

def cut_peaks(graph: Graph, order: _Int64) -> _Int64:
    """Reordered around its peak by minimum cuts, as long as that lowers the peak."""

def local_search(graph: Graph, order: _Int64, moves: int, window: int, floor: int, seed: int) -> _Int64:
    """The best order found from this one by annealed moves; stops at a peak of ``floor`` bytes."""

def heap_height(graph: Graph, order: _Int64, alignment: int) -> int:
    """Bytes of the heap that best fit packs the buffers of an order into."""

def lower_bound(graph: Graph) -> int:
    """A peak in bytes that no order beats."""

def best_fit(
    sizes: _Int64,
    interval_offsets: _Int64,
    starts: _Int64,
    ends: _Int64,
    ids: _Int64,
    alignment: int,
    limit: int = ...,
    seconds: float = ...,
) -> tuple[int, _Int64]:
    """Height and offsets of XLA's heap, see ``xla_stalloc.packing.best_fit``; from the limit up they mean nothing."""

def first_fit(
    sizes: _Int64,
    interval_offsets: _Int64,
    starts: _Int64,
    ends: _Int64,
    alignment: int,
    target: int,
    work: int,
    seed: int,
) -> tuple[int, _Int64]:
    """Height and offsets of the lowest of many first fits; see ``xla_stalloc.packing.first_fit``."""

class Csr:
    """Rows of numbers, one behind the other."""

    def __init__(self, offsets: _Int64, items: _Int64) -> None: ...

class Program:
    """What defines and uses each value, whatever the order; see ``_core/live_ranges.h``."""

    entry: int
    instructions: int
    buffers: int
    callees: Csr
    start: list[int]
    positions: Csr
    uses: Csr
    read_only_argument: list[int]
    buffer: list[int]

class LiveRanges:
    """When each value lives, and the flattened schedule."""

    @property
    def schedule(self) -> list[int]: ...
    @property
    def starts(self) -> list[int]: ...
    @property
    def ends(self) -> list[int]: ...

class SharingRules:
    """What may share memory, whatever the order; see ``_core/assignment.h``."""

    size: list[int]
    color: list[int]
    role: list[int]
    operands: Csr
    order: list[int]
    heirs: Csr
    heirs_positions: Csr
    copied: Csr
    reuses: Csr

class Assignment:
    """XLA's buffer assignment of one memory space."""

    @property
    def host(self) -> list[int]: ...
    @property
    def block(self) -> list[int]: ...
    @property
    def live_bytes(self) -> list[int]: ...
    @property
    def peak_event(self) -> int: ...
    @property
    def events(self) -> list[tuple[int, int, int]]: ...
    def pack(self) -> tuple[int, list[int]]:
        """Height of the heap, and the offset of each block."""

def live_ranges(program: Program, sequences: list[list[int]]) -> LiveRanges:
    """Live ranges of all values when each computation runs its sequence."""

def assign(program: Program, rules: SharingRules, ranges: LiveRanges, color: int, alignment: int) -> Assignment:
    """Everything that XLA's buffer assignment decides in one memory space, but for the packing."""

def heap_bytes(
    program: Program, rules: SharingRules, sequences: list[list[int]], color: int, alignment: int
) -> tuple[list[int], int]:
    """Which buffer's memory each buffer lies in (-1: the heap), and the height of the heap."""

def polish(
    graph: Graph,
    program: Program,
    rules: SharingRules,
    sequences: list[list[int]],
    computation: int,
    first: list[int],
    members: Csr,
    order: _Int64,
    alignment: int,
    evaluations: int,
    seed: int,
) -> tuple[_Int64, int]:
    """An order whose heap, as XLA packs it, is not higher, and that height."""

class Streams:
    """Times of a graph's nodes on the compute and the communication stream, in nanoseconds."""

    def __init__(self, compute: _Int64, communication: _Int64, waits_for: _Int64) -> None: ...

def simulate(graph: Graph, streams: Streams, order: _Int64) -> tuple[int, int]:
    """Nanoseconds of a whole order, and those of them in which communication is waited for."""

def overlap_search(
    graph: Graph,
    scenarios: list[tuple[Streams, int]],
    order: _Int64,
    limit: int,
    moves: int,
    window: int,
    seed: int,
) -> _Int64:
    """The order with the least exposed communication, a weighted sum over scenarios, within a limit of live bytes."""

class Verdict(enum.Enum):
    """What a search for a packing into a capacity came to."""

    FITS = 0
    INFEASIBLE = 1
    UNKNOWN = 2

class TightSearch:
    """Two exact searches that take turns; see ``_core/tight_search.h``."""

    def __init__(self, lower: _Int64, upper: _Int64, sizes: _Int64, seed: int) -> None: ...
    @property
    def work(self) -> int:
        """Spent so far."""
    def pack(self, capacity: int, work: int, seconds: float) -> tuple[Verdict, _Int64]:
        """Offsets of the items, none unless they fit. A later call goes on with what was learned."""

class Sections:
    """Time cut into largest sets of items that are alive together; see ``_core/sections.h``."""

    def __init__(self, lower: _Int64, upper: _Int64, sizes: _Int64) -> None: ...
    @property
    def first(self) -> _Int64: ...
    @property
    def last(self) -> _Int64: ...
    @property
    def load(self) -> _Int64:
        """Bytes alive in each section."""

class SweepRule(enum.Enum):
    """Where a sweep puts an item; see ``_core/sweep.h``."""

    FIRST_FIT = 0
    BEST_FIT = 1
    TWO_ENDED = 2
    AFFINE = 3

class Sweep:
    """Packing in the order of time, under a ceiling; see ``_core/sweep.h``."""

    def __init__(self, sections: Sections, backward: bool) -> None: ...
    def place(self, ceiling: int, rule: SweepRule, threshold: int, seconds: float) -> tuple[bool, _Int64]:
        """Whether everything fits under the ceiling, and the offsets if so."""

class OrderedFit:
    """First fit of blocks in a given order; see ``_core/ordered_fit.h``."""

    def __init__(self, sections: Sections, piece_offsets: _Int64, pieces: _Int64, alignments: _Int64) -> None: ...
    def pin(self, piece: int, offset: int) -> None:
        """A piece that lies where it lies; before anything is placed."""
    def place(self, order: _Int64, limit: int, seconds: float) -> tuple[int, _Int64]:
        """The height, and the offset of each block unless something ends above the limit."""
    def fill(self, order: _Int64, limit: int, seconds: float) -> _Int64:
        """The offset of each block, -1 for those that would end above the limit."""
    def repair(self, order: _Int64, target: int, placements: int, seed: int, seconds: float) -> tuple[bool, _Int64]:
        """Whether changes to the order made everything end at or below the target, and the offsets if so."""

def first_conflict(
    lower: _Int64, upper: _Int64, begin: _Int64, end: _Int64, owner: _Int64, same_slice_when_touching: bool
) -> tuple[int, int]:
    """Two buffers that overwrite each other, both -1 if there are none; see ``_core/conflicts.h``."""

class ArenaInconsistency(RuntimeError):
    """The arena's state contradicts itself: a block released twice, two that overlap, a dead canary."""

class ArenaExecution:
    """An execution that was announced; `slot` of the plan, or None if the plan does not know the program."""

    @property
    def slot(self) -> int | None: ...

class ArenaStatistics:
    """Counts of requests, and bytes; see ``plugins/arena/arena.h``."""

    @property
    def requests(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def unknown_program(self) -> int: ...
    @property
    def unknown_index(self) -> int: ...
    @property
    def unfit(self) -> int: ...
    @property
    def occupied(self) -> int: ...
    @property
    def in_gaps(self) -> int: ...
    @property
    def in_overflow(self) -> int: ...
    @property
    def failures(self) -> int: ...
    @property
    def live_blocks(self) -> int: ...
    @property
    def in_use_bytes(self) -> int: ...
    @property
    def peak_in_use_bytes(self) -> int: ...
    @property
    def reserved_bytes(self) -> int: ...
    @property
    def peak_reserved_bytes(self) -> int: ...
    @property
    def largest_free_bytes(self) -> int: ...

class Arena:
    """One region from which a job's allocations are served; made by ``xla_stalloc.plan.job.JobPlan.arena``."""

    def __init__(
        self,
        height: int,
        cycle: int,
        programs: NDArray[np.uint64],
        run_slots: _Int64,
        repeats: NDArray[np.uint8],
        slot_blocks: _Int64,
        offsets: _Int64,
        sizes: _Int64,
        addresses: int,
        capacity: int,
        granularity: int,
        memory: bool,
        pipeline: int,
        idle_fraction: float,
        shadow: bool,
        poison: bool,
        red_zone: int,
    ) -> None: ...
    def begin(self, program: int) -> ArenaExecution: ...
    def request(self, execution: ArenaExecution, index: int, bytes: int, alignment: int = 64) -> int | None: ...
    def release(self, offset: int) -> None: ...
    def trim(self) -> int: ...
    def statistics(self) -> ArenaStatistics: ...
    def why_not(self, bytes: int) -> str: ...
    @property
    def base(self) -> int: ...
    def replay(
        self, operations: NDArray[np.uint8], first: NDArray[np.uint64], bytes: NDArray[np.uint64]
    ) -> _Int64:
        """Runs a job's events (``Trace.arena_events``); the offset of each request, -1 if it was not served."""
