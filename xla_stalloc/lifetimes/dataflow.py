"""Which value sits where: XLA's dataflow in SSA form over the computations that the program runs in sequence.

A *value* is what one instruction writes at one place of its output shape. Tuples, bitcasts and calls pass values on;
loops and conditionals merge them into phi values. The rules are those of XLA's `HloDataflowAnalysis`
(xla/hlo/analysis/hlo_dataflow_analysis.cc, SSA form, bitcasts define nothing), and so is the numbering of the values,
because XLA breaks ties between buffers by it.
"""

import heapq
from collections.abc import Iterable, Iterator

from xla_stalloc.hlo import Computation, Instruction, Module, Shape

ShapeIndex = tuple[int, ...]

# Instructions whose output is made of the values of their operands (or of the computations that they call).
_PASSES_WHOLE_OPERAND = frozenset(("add-dependency", "all-reduce-done", "bitcast", "domain", "opt-barrier"))
_DEFINES_NOTHING = _PASSES_WHOLE_OPERAND | {"call", "conditional", "copy-done", "get-tuple-element", "while"}


class UnsupportedModuleError(ValueError):
    """The module has a form whose memory we do not model; leave it to XLA."""


class Value:
    """What `instruction` defines at `index` of its shape.

    Attributes:
      id: XLA's order of definition; ties between buffers are broken by it.
      positions: every (instruction, index) at which the value can be found, its definition first.
      is_phi: the value merges those that reach a loop or a conditional.
    """

    __slots__ = ("id", "index", "instruction", "is_phi", "positions", "shape", "uses")

    def __init__(self, id: int, instruction: Instruction, index: ShapeIndex, shape: Shape, is_phi: bool) -> None:
        """A value that is found only where it is defined, so far."""
        self.id = id
        self.instruction = instruction
        self.index = index
        self.shape = shape
        self.is_phi = is_phi
        self.positions: list[tuple[Instruction, ShapeIndex]] = [(instruction, index)]
        self.uses: list[tuple[Instruction, int, ShapeIndex]] | None = None  # once `program.uses` was asked

    @property
    def bytes(self) -> int:
        """Size in bytes, without padding."""
        return self.shape.byte_size

    def __repr__(self) -> str:
        """As XLA prints it: the instruction and the index."""
        index = "{" + ",".join(map(str, self.index)) + "}"
        return f"{self.instruction.name}{index}"


ValueSet = tuple[Value, ...]
ValueSets = dict[ShapeIndex, ValueSet]


class Dataflow:
    """The values of a module and where they flow.

    Attributes:
      values: in order of id.
      sets: per instruction id and shape index, the values that may be found there.
      callers: per computation id, the instruction that runs it (absent for the entry computation).
      order: per computation id, its instructions in the post order in which XLA visits them.
    """

    def __init__(self, module: Module) -> None:
        """Finds all values.

        Raises:
          UnsupportedModuleError: a computation has two callers.
        """
        self.module = module
        self.callers: dict[int, Instruction] = {}
        self.order: dict[int, list[Instruction]] = {}
        self.sets: dict[int, ValueSets] = {}
        self.values: list[Value] = []
        self._next_id = 0
        self._phi_inputs: dict[int, tuple[Value, ...]] = {}
        self._priority: dict[int, int] = {}
        self._visit(module.entry)
        self._define()
        self._propagate()
        self._simplify_phis()
        self._collect()

    @property
    def computations(self) -> Iterable[Computation]:
        """The computations that run in sequence, in the module's order."""
        return (c for c in self.module.computations if c.id in self.order)

    def at(self, instruction: Instruction, index: ShapeIndex = ()) -> ValueSet:
        """The values that may be found at `index` of the instruction's output."""
        return self.sets[instruction.id].get(index, ())

    def _visit(self, computation: Computation) -> None:
        """Numbers the instructions along the program: those of a called computation come before the caller."""
        if computation.id in self.order:
            return
        self.order[computation.id] = order = post_order(computation)
        for instruction in order:
            for called in sequential_callees(instruction):
                if self.callers.setdefault(called.id, instruction) is not instruction:
                    raise UnsupportedModuleError(
                        f"{self.module.source}: computation {called.name!r} has two callers, {instruction.name!r} and "
                        f"{self.callers[called.id].name!r}; expected a module after XLA's FlattenCallGraph pass"
                    )
                self._visit(called)
            self._priority[instruction.id] = len(self._priority)

    def _new_value(self, instruction: Instruction, index: ShapeIndex, shape: Shape, is_phi: bool = False) -> Value:
        value = Value(self._next_id, instruction, index, shape, is_phi)
        self._next_id += 1
        return value

    def _define(self) -> None:
        for computation in self.computations:
            is_called = computation.id in self.callers
            for instruction in self.order[computation.id]:
                sets: ValueSets = {}
                self.sets[instruction.id] = sets
                if instruction.opcode == "parameter" and is_called:
                    continue
                for index, shape in defined_at(instruction):
                    sets[index] = (self._new_value(instruction, index, shape),)

    def _propagate(self) -> None:
        queue = list(range(len(self._priority)))  # sorted, therefore a heap
        queued = set(queue)
        instructions = {i.id: i for order in self.order.values() for i in order}
        by_priority: list[Instruction] = [instructions[id] for id in self._priority]

        def push(instruction: Instruction) -> None:
            priority = self._priority[instruction.id]
            if priority not in queued:
                queued.add(priority)
                heapq.heappush(queue, priority)

        while queue:
            priority = heapq.heappop(queue)
            queued.discard(priority)
            instruction = by_priority[priority]
            if not self._update(instruction):
                continue
            for user in instruction.users:
                push(user)
                for called in sequential_callees(user):
                    for parameter in called.parameters:
                        push(parameter)
            if instruction is instruction.computation.root:
                caller = self.callers.get(instruction.computation.id)
                if caller is not None:
                    push(caller)
                    if caller.opcode == "while":
                        for called in caller.called:
                            push(called.parameters[0])

    def _update(self, instruction: Instruction) -> bool:
        """Recomputes the value sets of one instruction from what flows into it; True if they changed."""
        opcode = instruction.opcode
        sets = self.sets[instruction.id]
        if opcode == "parameter":
            caller = self.callers.get(instruction.computation.id)
            if caller is None:
                return False
            if caller.opcode == "while":
                body = caller.called[0]
                inputs = [caller.operands[0]] if instruction is body.root else [caller.operands[0], body.root]
                return self._merge(instruction, [self.sets[i.id] for i in inputs])
            if caller.opcode == "conditional":
                branch = caller.called.index(instruction.computation)
                return self._merge(instruction, [self.sets[caller.operands[branch + 1].id]])
            return _assign(sets, self.sets[caller.operands[instruction.parameter_number].id].items())
        if opcode == "while":
            sources = (instruction.called[0].root, instruction.operands[0])
            return self._merge(instruction, [self.sets[source.id] for source in sources])
        if opcode == "conditional":
            return self._merge(instruction, [self.sets[branch.root.id] for branch in instruction.called])
        return _assign(sets, self._passed_on(instruction))

    def _passed_on(self, instruction: Instruction) -> Iterator[tuple[ShapeIndex, ValueSet]]:
        """Where an instruction that merges nothing gets its values from."""
        opcode, operands = instruction.opcode, instruction.operands
        match opcode:
            case "tuple":
                for i, operand in enumerate(operands):
                    for index, values in self.sets[operand.id].items():
                        yield (i, *index), values
            case "get-tuple-element":
                element = instruction.tuple_index
                for index, values in self.sets[operands[0].id].items():
                    if index and index[0] == element:
                        yield index[1:], values
            case "copy":
                for index, values in self.sets[operands[0].id].items():
                    if index:
                        yield index, values
            case "call":
                yield from self.sets[instruction.called[0].root.id].items()
            case "copy-done":
                yield (), self.at(operands[0], (0,))
            case "copy-start":
                yield (1,), self.at(operands[0])
            case "send":
                for index, values in self.sets[operands[0].id].items():
                    yield (0, *index), values
            case "recv-done":
                for index, values in self.sets[operands[0].id].items():
                    if index and index[0] == 0:
                        yield index, values
            case "async-start":
                for i, operand in enumerate(operands):
                    for index, values in self._arrays(operand):
                        yield (0, i, *index), values
                if sequential_callees(instruction):
                    for index, values in self._arrays(instruction.called[0].root):
                        yield (1, *index), values
            case "async-update":
                for index, values in self._arrays(operands[0]):
                    yield index, values
            case "async-done" | "collective-permute-done" | "all-gather-done":
                for index, values in self._arrays(operands[0]):
                    if index and index[0] == 1:
                        yield index[1:], values
            case "all-gather-start" | "collective-permute-start":
                for i, operand in enumerate(operands):
                    # A single operand is found at {0}, several at {0, i}.
                    if instruction.shape.tuple_shapes[0].is_tuple and len(operands) > 1:
                        yield (0, i), self.at(operand)
                    elif i == 0:
                        for index, values in self._arrays(operand):
                            yield (0, *index), values
            case _ if opcode in _PASSES_WHOLE_OPERAND:
                yield from self.sets[operands[0].id].items()

    def _arrays(self, instruction: Instruction) -> list[tuple[ShapeIndex, ValueSet]]:
        shapes = dict(instruction.shape.subshapes())
        return [(index, values) for index, values in self.sets[instruction.id].items() if not shapes[index].is_tuple]

    def _merge(self, instruction: Instruction, inputs: list[ValueSets]) -> bool:
        """Gives `instruction` the value that reaches each index, or a phi where several do."""
        sets = self.sets[instruction.id]
        changed = False
        for index, shape in instruction.shape.subshapes():
            reaching = tuple(value for source in inputs for value in source.get(index, ()))
            if not reaching:
                continue
            present = sets.get(index)
            phi = present[0] if present and self._is_phi_of(present[0], instruction, index) else None
            if len(reaching) == 1:
                if present != reaching:
                    sets[index] = reaching
                    changed = True
            elif phi is None:
                phi = self._new_value(instruction, index, shape, is_phi=True)
                sets[index] = (phi,)
                self._phi_inputs[phi.id] = reaching
                changed = True
            elif self._phi_inputs[phi.id] != reaching:
                self._phi_inputs[phi.id] = reaching
                changed = True
        return changed

    @staticmethod
    def _is_phi_of(value: Value, instruction: Instruction, index: ShapeIndex) -> bool:
        return value.is_phi and value.instruction is instruction and value.index == index

    def _simplify_phis(self) -> None:
        """Replaces phis that only ever merge one other value (an element that a loop hands through) by that value.

        As XLA's PhiGraph, this also finds groups of phis that feed each other and nothing but one value besides.
        """
        replaced: dict[int, Value] = {}

        def resolve(value: Value) -> Value:
            while value.id in replaced:
                value = replaced[value.id]
            return value

        changed = True
        while changed:
            changed = False
            for phi_id in self._phi_inputs:
                if phi_id in replaced:
                    continue
                group, outside = {phi_id}, set[int]()
                pending = [phi_id]
                source: Value | None = None
                while pending and len(outside) < 2:
                    for value in map(resolve, self._phi_inputs[pending.pop()]):
                        if value.id in self._phi_inputs:
                            if value.id not in group:
                                group.add(value.id)
                                pending.append(value.id)
                        else:
                            outside.add(value.id)
                            source = value
                inputs = {resolve(v).id for v in self._phi_inputs[phi_id]} - {phi_id}
                if len(outside) == 1 and source is not None:
                    replaced.update(dict.fromkeys(group, source))
                    changed = True
                elif len(inputs) == 1:
                    replaced[phi_id] = next(resolve(v) for v in self._phi_inputs[phi_id] if resolve(v).id in inputs)
                    changed = True
        if replaced:
            for sets in self.sets.values():
                for index, values in sets.items():
                    if any(value.id in replaced for value in values):
                        sets[index] = tuple(dict.fromkeys(map(resolve, values)))

    def _collect(self) -> None:
        values: dict[int, Value] = {}
        for computation in self.computations:
            for instruction in computation.instructions:
                for index, found in self.sets[instruction.id].items():
                    for value in found:
                        values[value.id] = value
                        if value.instruction is not instruction:
                            value.positions.append((instruction, index))
        self.values = [values[id] for id in sorted(values)]


def sequential_callees(instruction: Instruction) -> list[Computation]:
    """The computations that run where `instruction` stands, in order; not those that are applied per element."""
    match instruction.opcode:
        case "call" | "conditional" | "async-start":
            return instruction.called
        case "while":
            body, condition = instruction.called
            return [condition, body]
    return []


def post_order(computation: Computation) -> list[Instruction]:
    """Instructions in the order in which XLA walks a computation: operands and control predecessors first.

    The roots of the walk are the instructions without users, in the order of the proto
    (HloComputation::MakeInstructionPostOrder in xla/hlo/ir/hlo_computation.cc).
    """
    order: list[Instruction] = []
    state: dict[int, bool] = {}  # absent: new, False: on the stack, True: done
    for start in computation.instructions:
        if start.users:
            continue
        stack = [start]
        while stack:
            current = stack[-1]
            seen = state.get(current.id)
            if seen is None:
                state[current.id] = False
                stack.extend(reversed(current.operands))
                stack.extend(current.control_predecessors)
            else:
                stack.pop()
                if not seen:
                    state[current.id] = True
                    order.append(current)
    return order


def _assign(sets: ValueSets, flows: Iterable[tuple[ShapeIndex, ValueSet]]) -> bool:
    changed = False
    for index, values in flows:
        if values and sets.get(index) != values:
            sets[index] = values
            changed = True
    return changed


def defined_at(instruction: Instruction) -> Iterator[tuple[ShapeIndex, Shape]]:
    """Where in its output the instruction writes itself, rather than hand on a value, and what shape that has."""
    if instruction.opcode not in _DEFINES_NOTHING:
        for index, shape in instruction.shape.subshapes():
            if _defines(instruction, index, shape):
                yield index, shape


def _defines(instruction: Instruction, index: ShapeIndex, shape: Shape) -> bool:
    match instruction.opcode:
        case "copy" | "tuple":
            return index == ()
        case "async-start":
            own = not sequential_callees(instruction)
            return shape.is_tuple or index[0] > 1 or (own and index[0] == 1)
        case "async-update" | "async-done" | "all-gather-done" | "collective-permute-done":
            return shape.is_tuple
        case "all-gather-start":
            return shape.is_tuple or index[0] == 1
        case "collective-permute-start":
            return shape.is_tuple or index[0] != 0
        case "copy-start" | "send":
            return index in ((), (1,), (2,)) if instruction.opcode == "send" else index in ((), (0,), (2,))
        case "recv-done":
            return index in ((), (1,))
    return True
