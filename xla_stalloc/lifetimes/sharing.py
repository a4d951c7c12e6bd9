"""Whether an instruction may write its output over an operand that dies there.

The rules are those of XLA's `HloDataflowAnalysis::CanShareOperandBufferWithUser`, which both its heap simulator and
its buffer assignment ask (xla/hlo/analysis/hlo_dataflow_analysis.cc).
"""

from xla_stalloc.hlo import Computation, Instruction
from xla_stalloc.hlo.schema.hlo_pb2 import HloInstructionProto
from xla_stalloc.lifetimes.alias import InPlace
from xla_stalloc.lifetimes.dataflow import ShapeIndex

# fmt: off
ELEMENTWISE = frozenset((
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "cbrt", "ceil", "clamp", "clz",
    "compare", "complex", "convert", "copy", "cosine", "cosh", "count-leading-zeros", "divide", "erf",
    "exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic",
    "map", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision",
    "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "sqrt", "stochastic-convert",
    "subtract", "tan", "tanh", "xor",
))
# fmt: on


class Sharing:
    """Answers, with memory, whether output and operand may share."""

    def __init__(self, in_place: InPlace) -> None:
        """Nothing is known at first."""
        self._in_place = in_place
        self._fusions: dict[int, FusedUses] = {}  # by id of the computation

    def allowed(
        self,
        operand: Instruction,
        operand_index: ShapeIndex,
        user: Instruction,
        user_index: ShapeIndex,
        number: int | None = None,
    ) -> bool:
        """True if `user` may write `user_index` of its output over `operand_index` of `operand`, a direct operand.

        XLA asks this of an operand as a whole; where the user has it several times, XLA looks at the first place only.
        Whoever must not rely on that asks for each place, by its `number` among the user's operands.
        """
        if operand.opcode == "constant":
            return False
        if operand.shape.at(operand_index) != user.shape.at(user_index):
            return False
        numbers = [i for i, o in enumerate(user.operands) if o is operand] if number is None else [number]
        if self._in_place_on(numbers, operand_index, user, user_index):
            return True
        match user.opcode:
            case "fusion" if user.fusion_kind in ("kLoop", "kInput", "kCustom"):
                return self._all_uses_elementwise(user.called[0], numbers[0])
            case "fusion" if user.fusion_kind == "kOutput" and user.called[0].root.opcode == "add":
                return _is_addend_of_product(user.called[0], numbers[0])
            case "while" | "conditional":
                return True
            case "dynamic-update-slice" | "scatter" | "set-dimension-size":
                return numbers == [0]
            case "triangular-solve":
                return numbers == [1]
            case "sort":
                if len(operand.users) != 1:
                    return False
                return len(user.operands) == 1 or numbers == [user_index[0]]
            case "call":
                return False
        return user.opcode in ELEMENTWISE or user.opcode == "bitcast-convert"

    def _in_place_on(
        self, numbers: list[int], operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex
    ) -> bool:
        """Whether `user` must write `user_index` of its output over that part of one of these operands."""
        return any(
            number in numbers and inner == operand_index and outer == user_index
            for number, inner, outer in self._in_place.pairs(user)
        )

    def _fused(self, computation: Computation) -> "FusedUses":
        fusion = self._fusions.get(computation.id)
        if fusion is None:
            fusion = self._fusions[computation.id] = FusedUses(computation)
        return fusion

    def _all_uses_elementwise(self, fused: Computation, parameter: int) -> bool:
        fusion = self._fused(fused)
        known = fusion.elementwise.get(parameter)
        if known is None:
            known = fusion.elementwise[parameter] = self._search_uses(fusion, parameter)
        return known

    def _search_uses(self, fusion: "FusedUses", parameter: int) -> bool:
        """Whether everything computed from the parameter inside its fusion depends on it element by element."""
        pending = [fusion.parameters[parameter]]
        seen = set(pending)
        while pending:
            for user, operand in fusion.uses.get(pending.pop(), ()):
                if user.opcode != "tuple" and not self._elementwise_on(fusion, user, operand):
                    return False
                if user.id not in seen:
                    seen.add(user.id)
                    pending.append(user.id)
        return True

    def _elementwise_on(self, fusion: "FusedUses", user: HloInstructionProto, operand: int) -> bool:
        match user.opcode:
            case "dynamic-update-slice":
                return operand == 0
            case "bitcast-convert":  # to a type of another width: of other dimensions
                return list(user.shape.dimensions) == list(fusion.messages[user.operand_ids[0]].shape.dimensions)
            case "fusion":
                inner = fusion.computation.module.computation(user.called_computation_ids[0])
                return user.fusion_kind == "kLoop" and self._all_uses_elementwise(inner, operand)
        return user.opcode in ELEMENTWISE


class FusedUses:
    """What is used where in a fused computation.

    Read from the messages, which costs a fraction of reading the computation itself, and is all that is ever asked of
    most fusions of a module.
    """

    def __init__(self, computation: Computation) -> None:
        """Reads the messages of a fused computation."""
        self.computation = computation
        self.elementwise: dict[int, bool] = {}  # by parameter number
        self.messages: dict[int, HloInstructionProto] = {}  # by id
        self.parameters: dict[int, int] = {}  # number -> id
        self.uses: dict[int, list[tuple[HloInstructionProto, int]]] = {}  # id -> (user, operand number)
        for message in computation.proto.instructions:
            self.messages[message.id] = message
            if message.opcode == "parameter":
                self.parameters[message.parameter_number] = message.id
            for number, operand in enumerate(message.operand_ids):
                self.uses.setdefault(operand, []).append((message, number))


def _is_addend_of_product(fused: Computation, parameter: int) -> bool:
    """Whether the fused parameter is only added to a dot or convolution at the root."""
    products = [i for i, o in enumerate(fused.root.operands) if o.opcode in ("dot", "convolution")]
    addend = fused.parameters[parameter]
    return bool(products) and addend.users == [fused.root] and fused.root.operands[1 - products[0]] is addend
