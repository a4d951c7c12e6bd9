"""What the buffers of a program hold: parameters, optimizer state, gradients, residuals, logits and the rest.

A compiled module does not say so. It is told from the phases in which a buffer is written and read (`phases`), from
opcodes, and last from the names of arguments: of two ways to know, the one that does not depend on names comes first.

    known = Kinds(lifetimes)
    known.kind(value), known.phase(value.instruction), known.layer(value.instruction)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property

from xla_stalloc.hlo import Instruction
from xla_stalloc.lifetimes import Buffer, Lifetimes, Value
from xla_stalloc.lifetimes import Kind as Allocation
from xla_stalloc.lifetimes.program import uses
from xla_stalloc.report.layers import in_scope, layers
from xla_stalloc.report.phases import Phase, phases


class Content(StrEnum):
    """What a buffer holds; of several that share a buffer, the first one here tells most."""

    PARAMETER = "parameter"
    OPTIMIZER_STATE = "optimizer state"
    GRADIENT = "gradient"
    RESIDUAL = "residual"
    LOGITS = "logits"
    OUTPUT = "output"
    COLLECTIVE = "collective"
    COPY = "copy"
    INPUT = "input"
    CONSTANT = "constant"
    TEMP = "temp"


COLLECTIVES = frozenset(
    (
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    )
)
_COPIES = frozenset(("copy", "copy-start", "copy-done"))
_RENAMES = frozenset(("bitcast", "convert", "copy", "parameter", "reshape", "transpose"))
_TOKENS = re.compile(r"[A-Za-z_]+")
_OPTIMIZER_NAMES = re.compile(
    r"(?:m|v|mu|nu|opt|opt_state|optim|optimizer|optimizer_state|trace|momentum|velocity|exp_avg|exp_avg_sq|adam)"
)
_PARAMETER_NAMES = re.compile(r"(?:p|w|ws|params?|parameters?|weights?|kernel|bias|variables|embedding|scale)")
_VOCABULARY = re.compile(r"emb|vocab|head|wte|logits", re.IGNORECASE)
_LOGITS = re.compile(r"logits|log_softmax|cross_entropy")


class Kinds:
    """What is known of the buffers of a program; everything is found once, when it is first asked for."""

    def __init__(self, lifetimes: Lifetimes) -> None:
        """Args: lifetimes of a scheduled module."""
        self._lifetimes = lifetimes
        self._found: dict[int, Content] = {}

    @cached_property
    def _phases(self) -> dict[int, Phase]:
        return phases(self._lifetimes)

    @cached_property
    def _layers(self) -> dict[int, str]:
        return layers(self._lifetimes)

    def phase(self, instruction: Instruction) -> Phase:
        """The part of the training step that an instruction belongs to; that of its fusion's reader if it is inside."""
        return self._phases.get(instruction.id, Phase.FORWARD)

    def layer(self, instruction: Instruction) -> str:
        """The layer of the model that an instruction belongs to, e.g. ``layers_3``; ``""`` if nothing tells."""
        return self._layers.get(instruction.id, "")

    def kind(self, value: Value) -> Content:
        """What a value is. One in the memory of a donated argument is still judged by itself, see `of_buffer`."""
        known = self._found.get(value.id)
        if known is None:
            known = self._found[value.id] = self._kind(value)
        return known

    def of_buffer(self, buffer: Buffer) -> Content:
        """What a buffer is for: that of the argument whose memory it is, else the most telling of its values'."""
        if buffer.kind is Allocation.CONSTANT:
            return Content.CONSTANT
        for value in buffer.values:
            if self._is_argument(value.instruction):
                return self.kind(value)
        found = {self.kind(value) for value in buffer.values}
        return next(content for content in Content if content in found)

    def role(self, value: Value) -> Content:
        """What the buffer of a value is for: of what shares an argument's memory, that; see `of_buffer`."""
        return self.of_buffer(self._buffer_of[value.id])

    # ---- Arguments

    def _is_argument(self, instruction: Instruction) -> bool:
        return instruction.opcode == "parameter" and instruction.computation is self._lifetimes.module.entry

    def _argument(self, value: Value) -> Content:
        read = self._used_in(value)
        tokens = _TOKENS.findall(value.instruction.op_name)
        is_float = _is_float(value)
        if Phase.UPDATE in read and self._has_update:
            is_used = Phase.FORWARD in read  # XLA may move a scatter of gradients into the update, or the other way
            named = _named(_OPTIMIZER_NAMES, tokens) and not _named(_PARAMETER_NAMES, tokens)
            return Content.PARAMETER if is_used and is_float and not named else Content.OPTIMIZER_STATE
        if _named(_OPTIMIZER_NAMES, tokens[1:]) and not _named(_PARAMETER_NAMES, tokens[1:]):
            return Content.OPTIMIZER_STATE
        is_differentiated = is_float and (value.shape.element_type, value.shape.dimensions) in self._gradient_shapes
        if is_differentiated or (is_float and _named(_PARAMETER_NAMES, tokens)):
            return Content.PARAMETER
        return Content.INPUT

    @cached_property
    def _has_update(self) -> bool:
        return Phase.BACKWARD in self._phases.values()

    @cached_property
    def _live_out(self) -> set[int]:
        root = self._lifetimes.dataflow.sets[self._lifetimes.module.entry.root.id]
        return {value.id for values in root.values() for value in values}

    @cached_property
    def _gradient_shapes(self) -> set[tuple[str, tuple[int, ...]]]:
        """Types of the outputs that the backward pass writes."""
        out = (value for value in self._lifetimes.values if value.id in self._live_out)
        return {
            (value.shape.element_type, value.shape.dimensions)
            for value in out
            if not value.shape.is_tuple and self.phase(value.instruction) is Phase.BACKWARD
        }

    @cached_property
    def _arguments(self) -> list[Value]:
        return [v for v in self._lifetimes.values if self._is_argument(v.instruction) and not v.shape.is_tuple]

    @cached_property
    def parameter_shapes(self) -> set[tuple[int, ...]]:
        """Sorted dimensions of the parameters that are matrices; their gradients have them in some order."""
        kinds = ((self.kind(value), value.shape.dimensions) for value in self._arguments)
        return {tuple(sorted(d)) for kind, d in kinds if kind is Content.PARAMETER and len(d) > 1}

    @cached_property
    def _vocabularies(self) -> set[int]:
        """Sizes of the vocabularies: the larger side of a matrix that is named after one."""
        found = set()
        for value in self._arguments:
            dimensions = value.shape.dimensions
            if _VOCABULARY.search(value.instruction.op_name) and len(dimensions) > 1 and min(dimensions) > 1:
                found.add(max(dimensions))
        return found

    # ---- Everything else

    def _read_in(self, value: Value) -> set[Phase]:
        return {self.phase(user) for user, _, _ in uses(value)}

    def _used_in(self, argument: Value) -> set[Phase]:
        """Phases in which an argument or a copy of it is read, or its memory written by the backward pass or later."""
        found = set[Phase]()
        waiting, seen = [argument.instruction], {argument.instruction.id}
        while waiting:
            for user in waiting.pop().users:
                found.add(self.phase(user))
                if user.opcode in _RENAMES and user.id not in seen:
                    seen.add(user.id)
                    waiting.append(user)
        written = self._buffer_of[argument.id].values[1:]
        if any(
            self.phase(value.instruction) is not Phase.FORWARD and not _is_copy(value.instruction) for value in written
        ):
            found.add(Phase.UPDATE)  # fused with what computes the gradient, maybe
        return found

    @cached_property
    def _buffer_of(self) -> dict[int, Buffer]:
        return {value.id: buffer for buffer in self._lifetimes.buffers for value in buffer.values}

    def _kind(self, value: Value) -> Content:
        instruction = value.instruction
        if instruction.opcode == "constant":
            return Content.CONSTANT
        if self._is_argument(instruction):
            return self._argument(value)
        phase, read = self.phase(instruction), self._read_in(value)
        is_collective = _does(instruction, COLLECTIVES)
        if phase is Phase.BACKWARD and self._is_gradient(value, read, is_collective):
            return Content.GRADIENT
        if is_collective:
            return Content.COLLECTIVE
        if _is_copy(instruction):
            return Content.COPY
        if value.shape.is_tuple:
            return Content.OUTPUT if value.id in self._live_out else Content.TEMP
        if self._is_logits(value, phase):
            return Content.LOGITS
        if value.id in self._live_out:
            return Content.OUTPUT
        if phase is Phase.FORWARD and Phase.BACKWARD in read:
            return Content.RESIDUAL
        return Content.TEMP

    def _is_gradient(self, value: Value, read: set[Phase], is_collective: bool) -> bool:
        op_name = value.instruction.op_name
        if "rematted_computation" in op_name or not _is_float(value):
            return False
        if Phase.UPDATE in read or value.id in self._live_out:
            return True
        if is_collective or _is_copy(value.instruction):
            return False
        return op_name.endswith("scatter-add") or tuple(sorted(value.shape.dimensions)) in self.parameter_shapes

    def _is_logits(self, value: Value, phase: Phase) -> bool:
        dimensions = value.shape.dimensions
        op_name = value.instruction.op_name
        if phase is Phase.UPDATE or len(dimensions) < 2 or not _is_float(value):
            return False
        if _LOGITS.search(op_name):
            return True
        if in_scope(op_name):
            return False  # inside a numbered layer, where a side may equal the vocabulary by chance
        if tuple(sorted(dimensions)) in self.parameter_shapes:
            return False  # the embedding itself in another type
        return not self._vocabularies.isdisjoint(dimensions)


def _is_float(value: Value) -> bool:
    return value.shape.element_type.startswith(("f", "bf"))


def _named(names: re.Pattern[str], tokens: Iterable[str]) -> bool:
    return any(names.fullmatch(token.lower()) for token in tokens)


def _does(instruction: Instruction, opcodes: frozenset[str]) -> bool:
    """Whether an instruction is one of these operations, or the start or the end of one."""
    opcode = instruction.opcode
    if opcode.removesuffix("-start").removesuffix("-done") in opcodes:
        return True
    if opcode in ("async-update", "async-done"):
        return bool(instruction.operands) and _does(instruction.operands[0], opcodes)
    return opcode == "async-start" and any(i.opcode in opcodes for c in instruction.called for i in c.instructions)


def _is_copy(instruction: Instruction) -> bool:
    if instruction.opcode in _COPIES:
        return True
    if instruction.opcode != "fusion":
        return False
    inside = {i.opcode for i in instruction.called[0].instructions}
    return inside <= _RENAMES and "copy" in inside
