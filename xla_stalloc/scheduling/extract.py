"""From a module's computation to the plain graph that the solvers order, and back to a sequence of instructions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from xla_stalloc.hlo import Computation, Instruction, Module
from xla_stalloc.hlo.barriers import BARRIER
from xla_stalloc.lifetimes import Kind, Lifetimes, Value
from xla_stalloc.lifetimes.dataflow import sequential_callees
from xla_stalloc.lifetimes.program import uses
from xla_stalloc.scheduling import constraints
from xla_stalloc.scheduling.graph import Buffer, Graph, Int64Array

# Take no time and no memory: each stays with the instruction whose value it names.
_NAMES = frozenset(("bitcast", "get-tuple-element"))
_FIRST = frozenset(("constant", "parameter"))


@dataclass(frozen=True)
class Region:
    """The scheduling problem of one computation.

    Attributes:
      computation: id of the computation.
      graph: the problem; its numbering is the module's own order.
      first: ids of the instructions that run before all nodes, whatever the order.
      members: per node, the ids of the instructions that it stands for, in their order.
      shared_bytes: per node, bytes of the graph's buffers that it touches and in which a computation that it calls has
        values too: the state of a loop.
    """

    computation: int
    graph: Graph
    first: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    shared_bytes: tuple[int, ...]

    def sequence(self, order: Iterable[int]) -> list[int]:
        """Instruction ids of the whole computation when the nodes run in `order`."""
        return [*self.first, *(id for node in order for id in self.members[int(node)])]

    def order(self, sequence: Iterable[int]) -> Int64Array:
        """The order of the nodes in what `sequence` made: its inverse."""
        place = {id: step for step, id in enumerate(sequence)}
        return np.array(sorted(range(self.graph.nodes), key=lambda node: place[self.members[node][0]]), np.int64)


class _Nodes:
    """Groups the instructions of a computation into nodes."""

    def __init__(self, computation: Computation) -> None:
        self.first: list[int] = []
        self.members: list[list[Instruction]] = []
        self.node: dict[int, int | None] = {}  # by instruction id; None: among the first
        waiting = {
            i.operands[0].id for i in computation.instructions if i.opcode == BARRIER and _only_feeds(i.operands[0], i)
        }
        for instruction in computation.sequence:
            if instruction.id in waiting:
                continue
            free = not instruction.control_predecessors
            if instruction.opcode in _FIRST and free:
                self.node[instruction.id] = None
                self.first.append(instruction.id)
            elif instruction.opcode in _NAMES and free:
                node = self.node[instruction.id] = self.node[instruction.operands[0].id]
                if node is None:
                    self.first.append(instruction.id)
                else:
                    self.members[node].append(instruction)
            else:
                feeding = [o for o in instruction.operands if o.id in waiting] if instruction.opcode == BARRIER else []
                group = [*feeding, instruction]
                self.node.update(dict.fromkeys((i.id for i in group), len(self.members)))
                self.members.append(group)

    def is_name(self, instruction: Instruction) -> bool:
        """Whether it takes no time where it stands, because it stays with another instruction."""
        node = self.node.get(instruction.id)
        return node is None or (instruction.opcode in _NAMES and self.members[node][0] is not instruction)

    def predecessors(self, edges: Iterable[tuple[int, int]]) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in self.members]
        for node, group in enumerate(self.members):
            for instruction in group:
                for before in (*instruction.operands, *instruction.control_predecessors):
                    other = self.node[before.id]
                    if other is not None and other != node:
                        found[node].add(other)
        for before_node, node in edges:
            found[node].add(before_node)
        return found


def _only_feeds(operand: Instruction, barrier: Instruction) -> bool:
    return operand.opcode == "tuple" and operand.users == [barrier] and not operand.control_predecessors


def extract(
    module: Module,
    lifetimes: Lifetimes,
    computation: Computation,
    kinds: Collection[Kind] = (Kind.TEMP,),
    pin_collectives: bool = True,
) -> Region:
    """The scheduling problem of `computation`.

    Args:
      module: as the compiler handed it over, optimization barriers included: an order must honour them.
      lifetimes: of `module` without barriers; inner computations count with the order that they have there.
      computation: one of `module` that runs in sequence.
      kinds: of the buffers that count.
      pin_collectives: whether collectives keep their order.

    Raises:
      UnsupportedModuleError: the module's own schedule already breaks what an order must respect.
    """
    nodes = _Nodes(computation)
    owner = _owners(module, computation)

    def node_of(instruction: Instruction) -> int | None:
        direct = owner.get(instruction.id)
        return None if direct is None else nodes.node.get(direct)

    timed = [i for i in computation.sequence if not nodes.is_name(i)]
    edges = [*constraints.pinned_order(timed, pin_collectives)]
    if constraints.keeps_windows(module):
        edges += constraints.async_windows(timed)
    numbered = [(nodes.node[a.id], nodes.node[b.id]) for a, b in edges]
    between = [(a, b) for a, b in numbered if a is not None and b is not None and a != b]
    predecessors = nodes.predecessors([*between, *constraints.write_after_read(lifetimes, computation, node_of)])
    buffers, shared = _memory(lifetimes, computation, node_of, owner, kinds)
    graph = Graph([sorted(before) for before in predecessors], [0] * len(nodes.members), buffers)
    return Region(
        computation=computation.id,
        graph=_with_lumps(graph, nodes.members, lifetimes),
        first=tuple(nodes.first),
        members=tuple(tuple(i.id for i in group) for group in nodes.members),
        shared_bytes=tuple(shared.get(node, 0) for node in range(len(nodes.members))),
    )


def choices(computation: Computation) -> int:
    """How many instructions of a computation an order could move: all but arguments, constants and names."""
    return sum(i.opcode not in _NAMES and i.opcode not in _FIRST for i in computation.sequence)


def _owners(module: Module, computation: Computation) -> dict[int, int]:
    """Instruction id -> id of the instruction of `computation` that it is, or that it runs inside of."""
    owner: dict[int, int] = {}

    def visit(inner: Computation, outer: int | None) -> None:
        for instruction in inner.instructions:
            owner[instruction.id] = top = instruction.id if outer is None else outer
            if instruction.opcode in ("while", "conditional", "call", "async-start"):
                for called in instruction.called:
                    visit(called, top)

    visit(computation, None)
    return owner


def _memory(
    lifetimes: Lifetimes,
    computation: Computation,
    node_of: constraints.NodeOf,
    owner: dict[int, int],
    kinds: Collection[Kind],
) -> tuple[list[Buffer], dict[int, int]]:
    """The graph's buffers, one for each value that `computation` sees; and the shared bytes of nodes."""
    number: dict[int, int] = {}  # value id -> graph buffer
    rows: list[tuple[Value, int, set[int], bool]] = []
    predecessor: dict[int, int] = {}  # value id -> id of the value that lives before it in memory that both must share
    around: dict[int, set[int]] = {}  # node -> must-alias buffers that it touches
    inside: dict[int, set[int]] = {}  # node -> must-alias buffers of values that are defined inside it
    for place, buffer in enumerate(lifetimes.buffers):
        if buffer.kind not in kinds or buffer.bytes == 0 or buffer.memory_space != 0:
            continue
        before: Value | None = None
        for value in sorted(buffer.values, key=lifetimes.live_range):
            if value.instruction.id not in owner:
                continue
            definition = node_of(value.instruction)
            readers = (node_of(user) for user, _, _ in uses(value))
            holders = (node_of(instruction) for instruction, _ in value.positions)
            touches = {node for node in (*readers, *holders) if node is not None}
            if value.instruction.computation.id != computation.id and definition is not None:
                inside.setdefault(definition, set()).add(place)
                if touches == {definition} and not _is_visible(value, computation):
                    continue
            if not touches:
                continue
            for node in touches:
                around.setdefault(node, set()).add(place)
            if before is not None:
                predecessor[value.id] = before.id
            before = value
            number[value.id] = len(rows)
            live_out = any(instruction.id == computation.root.id for instruction, _ in value.positions)
            rows.append((value, buffer.bytes, touches, live_out))
    in_heap_only = set(kinds) == {Kind.TEMP}
    buffers = []
    for value, size, touches, live_out in rows:
        definition = node_of(value.instruction)
        own = lifetimes.numbering.value[value.id]
        # In the memory of arguments and outputs, aliased values may take over from each other too.
        reuses = lifetimes.reuses[own] + ([] if in_heap_only else lifetimes.ancestors[own])
        candidates = list(dict.fromkeys(lifetimes.values[v].id for v in reuses))
        if value.id in predecessor:
            candidates.insert(0, predecessor[value.id])
        buffers.append(
            Buffer(
                size=size,
                touches=sorted(touches),
                defs=() if definition is None else (definition,),
                reuses=[number[id] for id in candidates if id in number],
                live_in=definition is None,
                live_out=live_out,
            )
        )
    shared = {
        node: sum(lifetimes.buffers[place].bytes for place in places & around.get(node, set()))
        for node, places in inside.items()
    }
    return buffers, shared


def _is_visible(value: Value, computation: Computation) -> bool:
    """Whether a value of an inner computation can be found in `computation` too, as the result of a call."""
    return any(instruction.computation.id == computation.id for instruction, _ in value.positions)


def _with_lumps(graph: Graph, groups: list[list[Instruction]], lifetimes: Lifetimes) -> Graph:
    """The graph with what called computations need on top of what lives around them, under the present schedule."""
    calling = {n for n, group in enumerate(groups) for i in group for c in sequential_callees(i) if c.sequence}
    if not calling:
        return graph
    time = {instruction.id: step for step, instruction in enumerate(lifetimes.schedule)}
    live, memory = lifetimes.live_bytes(), graph.memory(graph.incumbent)
    lumps = [0] * graph.nodes
    for node in sorted(calling):
        for instruction in groups[node]:
            inner = [i for called in sequential_callees(instruction) for i in called.sequence if i.id in time]
            if inner:
                # What these call in turn stands between them on the time line.
                during = live[min(time[i.id] for i in inner) : time[instruction.id] + 1]
                lumps[node] = max(lumps[node], max(during) - int(memory[node]))
    return graph.with_lumps(lumps)
