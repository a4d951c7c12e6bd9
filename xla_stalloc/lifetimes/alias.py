"""Which values must share memory: loops, conditionals, updates in place, and outputs aliased with arguments.

The rules are those of XLA's `HloAliasAnalysis` and `AliasInfo` (xla/hlo/analysis/hlo_alias_analysis.cc, alias_info.cc).
"""

from collections.abc import Iterator

from xla_stalloc.hlo import Instruction
from xla_stalloc.lifetimes.dataflow import Dataflow, ShapeIndex, Value

# (operand number, index in the operand, index in the output)
InPlacePair = tuple[int, ShapeIndex, ShapeIndex]


_UPDATES = frozenset(
    (
        "all-reduce-start",
        "async-start",
        "collective-permute",
        "collective-permute-start",
        "custom-call",
        "dynamic-update-slice",
        "fusion",
        "ragged-all-to-all",
        "scatter",
        "set-dimension-size",
    )
)


class InPlace:
    """The in-place pairs of instructions, computed once per instruction."""

    def __init__(self) -> None:
        """Nothing is known at first."""
        self._pairs: dict[int, tuple[InPlacePair, ...]] = {}

    def pairs(self, instruction: Instruction) -> tuple[InPlacePair, ...]:
        """Operands whose memory the instruction must write its output to."""
        pairs = self._pairs.get(instruction.id)
        if pairs is None:
            pairs = self._pairs[instruction.id] = tuple(self._find(instruction))
        return pairs

    def _find(self, instruction: Instruction) -> Iterator[InPlacePair]:
        annotated = ((operand, inner, outer) for outer, operand, inner in instruction.output_operand_aliasing)
        match instruction.opcode:
            case "dynamic-update-slice" | "set-dimension-size":
                yield 0, (), ()
            case "scatter":
                yield from _elementwise_pairs((len(instruction.operands) - 1) // 2)
            case "all-reduce-start":
                yield from _elementwise_pairs(len(instruction.operands))
            case "ragged-all-to-all":
                yield 1, (), ()
            case "collective-permute" if len(instruction.operands) == 4:
                yield from _destination_pairs(instruction, ())
            case "collective-permute-start" if len(instruction.operands) == 4:
                yield from _destination_pairs(instruction, (1,))
            case "custom-call" | "async-start":
                yield from annotated
            case "fusion":
                yield from self._fusion(instruction)
                yield from annotated

    def _fusion(self, fusion: Instruction) -> Iterator[InPlacePair]:
        """Pairs that hold because the fused computation updates one of its parameters in place."""
        # Looked up in the message first: reading a computation costs far more, and few fusions update anything.
        if not any(message.opcode in _UPDATES for message in fusion.called[0].proto.instructions):
            return
        root = fusion.called[0].root
        for output, shape in fusion.shape.subshapes():
            if shape.is_tuple:
                continue
            source, index = _origin(root, output)
            for operand, inner, outer in self.pairs(source):
                if outer != index:
                    continue
                target, target_index = _origin(source.operands[operand], inner)
                if target.opcode == "fusion":
                    for nested_operand, nested_inner, nested_outer in self.pairs(target):
                        if nested_outer == target_index:
                            target, target_index = _origin(target.operands[nested_operand], nested_inner)
                            break
                if target.opcode == "parameter":
                    yield target.parameter_number, target_index, output


def _elementwise_pairs(count: int) -> Iterator[InPlacePair]:
    if count == 1:
        yield 0, (), ()
    else:
        for i in range(count):
            yield i, (), (i,)


def _destination_pairs(permute: Instruction, prefix: ShapeIndex) -> Iterator[InPlacePair]:
    """A collective-permute with four operands writes into its second one."""
    yield 1, (), prefix
    for i in range(len(permute.operands[1].shape.tuple_shapes)):
        yield 1, (i,), (*prefix, i)


def _origin(instruction: Instruction, index: ShapeIndex) -> tuple[Instruction, ShapeIndex]:
    """Walks back through tuples and bitcasts to the instruction that writes what is found at `index`."""
    while instruction.opcode == "tuple" and index:
        instruction, index = instruction.operands[index[0]], index[1:]
    while instruction.opcode == "get-tuple-element":
        instruction, index = instruction.operands[0], (instruction.tuple_index, *index)
    while not index and instruction.opcode == "bitcast":
        instruction = instruction.operands[0]
    return instruction, index


class MustAlias:
    """Must-alias sets over the values of a dataflow (union-find, smallest id first)."""

    def __init__(self, dataflow: Dataflow, in_place: InPlace) -> None:
        """Unites all that must share memory."""
        self._parent: dict[int, int] = {value.id: value.id for value in dataflow.values}
        self._dataflow = dataflow
        self._alias_outputs_with_arguments()
        for computation in dataflow.computations:
            for instruction in computation.instructions:
                if instruction.opcode in ("conditional", "while"):
                    self._alias_control_flow(instruction)
                elif instruction.opcode in _UPDATES:
                    for operand, inner, outer in in_place.pairs(instruction):
                        self._unite(dataflow.at(instruction, outer), dataflow.at(instruction.operands[operand], inner))

    def sets(self) -> list[list[Value]]:
        """The sets, each in order of id, by the id of their first value."""
        sets: dict[int, list[Value]] = {}
        for value in self._dataflow.values:
            sets.setdefault(self._find(value.id), []).append(value)
        return list(sets.values())

    def _alias_outputs_with_arguments(self) -> None:
        entry = self._dataflow.module.entry
        for output, parameter, index, _ in self._dataflow.module.input_output_alias:
            self._unite(self._dataflow.at(entry.root, output), self._dataflow.at(entry.parameters[parameter], index))

    def _alias_control_flow(self, instruction: Instruction) -> None:
        at = self._dataflow.at
        if instruction.opcode == "while":
            body, condition = instruction.called
            sources = [instruction.operands[0], body.root, body.parameters[0], condition.parameters[0]]
        else:
            sources = [branch.root for branch in instruction.called]
        for index, values in self._dataflow.sets[instruction.id].items():
            for source in sources:
                self._unite(values, at(source, index))

    def _unite(self, some: tuple[Value, ...], others: tuple[Value, ...]) -> None:
        for a in some:
            for b in others:
                low, high = sorted((self._find(a.id), self._find(b.id)))
                self._parent[high] = low

    def _find(self, id: int) -> int:
        parent = self._parent
        while parent[id] != id:
            parent[id] = parent[parent[id]]
            id = parent[id]
        return id
