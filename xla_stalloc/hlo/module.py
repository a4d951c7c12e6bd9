"""A compiled program: a module of computations of instructions, as XLA's own C++ classes of these names.

The objects are views on the protobuf messages; what most code asks for is resolved once (operands, users, shapes),
the rest is read from the message when asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from google.protobuf.message import DecodeError

from xla_stalloc.hlo.errors import HloError
from xla_stalloc.hlo.fingerprint import fingerprint
from xla_stalloc.hlo.locations import SourceLocation, StackFrames
from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.hlo.shape import Shape, ShapeIndex, ShapeTable

_ADVICE = "The file is damaged or was not written by XLA: dump or compile the program again"

# Keys that only one backend writes into its instructions' configuration.
_BACKEND_CONFIG_KEYS = {
    b'"outer_dimension_partitions"': "cpu",
    b'"operation_queue_id"': "cuda",
    b'"flag_configs"': "tpu",
}


class Instruction:
    """One operation of a computation and the value that it defines.

    Attributes:
        id: unique in the module.
        name: unique in the module, as in HLO text.
        opcode: as in HLO text, e.g. "get-tuple-element".
        shape: of the value.
        operands: the instructions whose values it reads, in the operation's order; one may occur twice.
        users: the instructions that have it as an operand, each once, in the order of the computation.
        control_predecessors: instructions that must run before it for other reasons than data.
        called: the computations that it calls (a while's body and condition, in this order; a fusion's; ...).
        computation: the computation that holds it.
        proto: the message; treat it as read-only.
    """

    __slots__ = (
        "called",
        "computation",
        "control_predecessors",
        "id",
        "name",
        "opcode",
        "operands",
        "proto",
        "shape",
        "users",
    )

    def __init__(self, proto: hlo_pb2.HloInstructionProto, shape: Shape, computation: Computation) -> None:
        """Args: the message; its shape; what holds it. `Module` fills in the references to others."""
        self.id: int = proto.id
        self.name: str = proto.name
        self.opcode: str = proto.opcode
        self.shape = shape
        self.computation = computation
        self.proto = proto
        self.operands: list[Instruction] = []
        self.users: list[Instruction] = []
        self.control_predecessors: list[Instruction] = []
        self.called: list[Computation] = []

    @property
    def parameter_number(self) -> int:
        """Which parameter of its computation a "parameter" is."""
        return self.proto.parameter_number

    @property
    def tuple_index(self) -> int:
        """Which part of its operand a "get-tuple-element" takes."""
        return self.proto.tuple_index

    @property
    def fusion_kind(self) -> str:
        """The kind of a fusion, "kLoop" or "kOutput" for instance; "" for other opcodes."""
        return self.proto.fusion_kind

    @property
    def custom_call_target(self) -> str:
        """The function that a custom call calls; "" for other opcodes."""
        return self.proto.custom_call_target

    @property
    def channel_id(self) -> int:
        """The channel of a collective or of a send or receive; 0 if it has none."""
        return self.proto.channel_id

    @property
    def has_side_effect(self) -> bool:
        """Whether a custom call says that it does more than compute its result."""
        return self.proto.custom_call_has_side_effect

    @property
    def output_operand_aliasing(self) -> tuple[tuple[ShapeIndex, int, ShapeIndex], ...]:
        """Results of a fusion or custom call written in place: (output index, operand number, index in the operand)."""
        return tuple(
            (tuple(alias.output_shape_index), alias.operand_index, tuple(alias.operand_shape_index))
            for alias in self.proto.output_operand_aliasing
        )

    @property
    def op_name(self) -> str:
        """The path of the operation in the user's program, e.g. "jit(step)/jvp(Dense)/dot_general"; may be ""."""
        return self.proto.metadata.op_name

    @property
    def source_file(self) -> str:
        """The file of the user's program that it comes from; "" if unknown."""
        return self.source_stack[0].file if self.source_stack else ""

    @property
    def source_line(self) -> int:
        """The line in `source_file`, from 1; 0 if unknown."""
        return self.source_stack[0].line if self.source_stack else 0

    @property
    def source_stack(self) -> tuple[SourceLocation, ...]:
        """The user's call stack, innermost frame first; a single location if the compiler was told no more."""
        metadata = self.proto.metadata
        if metadata.stack_frame_id:
            return self.computation.module.stack_frames.stack(metadata.stack_frame_id)
        if metadata.source_file:
            return (SourceLocation(metadata.source_file, metadata.source_line, ""),)
        return ()

    def __repr__(self) -> str:
        """The instruction almost as in HLO text."""
        return f"{self.shape} %{self.name} = {self.opcode}({', '.join('%' + o.name for o in self.operands)})"


class Computation:
    """A function of the program: a list of instructions with a root that is its result.

    Attributes:
        id: unique in the module.
        name: as in HLO text.
        instructions: in the order of the message, operands before users.
        root: the instruction that is the result.
        parameters: by parameter number.
        sequence: the instructions in the order in which they run; without a schedule, that of `instructions`.
        is_scheduled: whether the module has a schedule for it. A fusion's computation has none.
        module: the module that holds it.
        proto: the message; treat it as read-only.
    """

    __slots__ = (
        "id",
        "instructions",
        "is_scheduled",
        "module",
        "name",
        "parameters",
        "proto",
        "read",
        "root",
        "sequence",
    )

    instructions: list[Instruction]
    parameters: list[Instruction]
    root: Instruction
    sequence: list[Instruction]

    def __init__(
        self, proto: hlo_pb2.HloComputationProto, module: Module, read: Callable[[Computation], None] | None = None
    ) -> None:
        """Args: the message; what holds it; what reads the instructions when they are first asked for, if not now."""
        self.id: int = proto.id
        self.name: str = proto.name
        self.module = module
        self.proto = proto
        self.is_scheduled = False
        self.read = read

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there yet."""
        if name not in ("instructions", "parameters", "root", "sequence") or self.read is None:
            raise AttributeError(name)
        read, self.read = self.read, None
        read(self)
        return getattr(self, name)

    def __repr__(self) -> str:
        """Name and size."""
        return f"<Computation {self.name}: {len(self.instructions)} instructions>"


class Module:
    """A program as the compiler sees it.

    Attributes:
        name: e.g. "jit_step".
        proto: the message; treat it as read-only.
        source: where it comes from, for messages.
        entry: the computation that runs first.
        computations: callees before their callers.
        is_scheduled: whether the compiler has decided the order of its instructions.
        input_output_alias: results that take over an argument's memory:
            (output index, parameter number, index in the parameter, whether they must).
        buffer_donors: arguments that any result may take over: (parameter number, index in the parameter).
        buffer_assignment: what XLA decided about memory, if the source tells.
        num_partitions: how many devices share one copy of the program's data (SPMD); 1 for a single device.
        frontend_attributes: what the framework told the compiler about the module.
        stack_frames: the table that resolves instructions' source locations.
    """

    def __init__(
        self,
        proto: hlo_pb2.HloModuleProto,
        source: str,
        *,
        platform: str = "",
        buffer_assignment: hlo_pb2.BufferAssignmentProto | None = None,
        num_partitions: int = 0,
        like: Module | None = None,
        lazy: bool = False,
        serialized: bytes | None = None,
    ) -> None:
        """Args: the message; a name for messages; then what the source knows beside it ("", None, 0: nothing).

        `like` is a module much like this one: computations without a schedule are shared if they are equal in both.
        `lazy` says that the message comes from XLA itself: such computations are then read, and checked, only when they
        are asked for. `serialized` are the bytes that the message was read from.

        Raises:
            HloError: the message is not a complete program.
        """
        self.name: str = proto.name
        self.proto = proto
        self.source = source
        if serialized is not None:
            self.serialized = serialized
        self.buffer_assignment = buffer_assignment
        self.num_partitions: int = num_partitions or max(proto.device_assignment.computation_count, 1)
        self.frontend_attributes: dict[str, str] = dict(proto.frontend_attributes.map)
        self.stack_frames = StackFrames(proto.stack_frame_index)
        self.is_scheduled = bool(proto.schedule.sequences)
        self.computations: list[Computation] = []
        self._platform_of_source = platform
        self._platform: str | None = like.platform if like else None
        self._link(like, lazy)
        self.input_output_alias: tuple[tuple[ShapeIndex, int, ShapeIndex, bool], ...] = tuple(
            (
                tuple(alias.output_shape_index),
                alias.parameter_number,
                tuple(alias.parameter_shape_index),
                alias.kind == hlo_pb2.HloInputOutputAliasProto.MUST_ALIAS,
            )
            for alias in proto.input_output_alias.entries
        )
        self.buffer_donors: tuple[tuple[int, ShapeIndex], ...] = tuple(
            (donor.parameter_number, tuple(donor.parameter_shape_index)) for donor in proto.buffer_donor.entries
        )
        self._check_aliases()

    @classmethod
    def from_bytes(
        cls,
        serialized: bytes,
        source: str,
        *,
        platform: str = "",
        like: Module | None = None,
        lazy: bool = False,
    ) -> Module:
        """Open a serialized HloModuleProto, e.g. what XLA hands to a hook; `like` and `lazy` as in the constructor.

        Raises:
            HloError: these bytes are no HloModuleProto, or not a complete program.
        """
        try:
            proto = hlo_pb2.HloModuleProto.FromString(serialized)
        except DecodeError as error:
            raise HloError(source, f"expected a serialized HloModuleProto, but {error}", _ADVICE) from None
        return cls(proto, source, platform=platform, like=like, lazy=lazy, serialized=serialized)

    @cached_property
    def serialized(self) -> bytes:
        """The module's bytes: those that it was opened from, else its message's."""
        serialized: bytes = self.proto.SerializeToString(deterministic=True)
        return serialized

    @property
    def platform(self) -> str:
        """The backend it was compiled for, "cpu", "cuda", "tpu" or the source's own name; "" if nothing tells.

        The marks that a backend leaves on the instructions count first: a client may be a wrapper of another.
        """
        if self._platform is None:
            marked, told = self._recognize_platform(), self._platform_of_source
            # AMD's and NVIDIA's backends are one and leave the same marks.
            self._platform = told if not marked or (marked, told) == ("cuda", "rocm") else marked
        return self._platform

    @cached_property
    def instructions_by_id(self) -> dict[int, Instruction]:
        """Every instruction of every computation."""
        return {i.id: i for computation in self.computations for i in computation.instructions}

    def instruction(self, id: int) -> Instruction:
        """The instruction with an id.

        Raises:
            KeyError: there is none.
        """
        return self.instructions_by_id[id]

    def computation(self, id: int) -> Computation:
        """The computation with an id.

        Raises:
            KeyError: there is none.
        """
        return self._computations_by_id[id]

    @cached_property
    def _computations_by_id(self) -> dict[int, Computation]:
        return {computation.id: computation for computation in self.computations}

    def fingerprint(self) -> str:
        """A name for what the program computes on which shapes: 32 hexadecimal digits.

        Equal in every process and on every host; unaffected by the schedule, names, ids, source locations and
        frontend attributes.
        """
        return fingerprint(self)

    def __repr__(self) -> str:
        """Name and size."""
        return f"<Module {self.name}: {len(self.instructions_by_id)} instructions, from {self.source}>"

    # ---- From messages to objects. XLA writes operands before users and callees before callers, and reads nothing
    # else; so one pass in the order of the messages finds every dangling reference and every cycle.

    def _fail(self, problem: str) -> NoReturn:
        raise HloError(self.source, f"module {self.name!r} is not a complete program: {problem}", _ADVICE)

    def _link(self, like: Module | None, lazy: bool) -> None:
        shapes = ShapeTable()
        computations: dict[int, Computation] = {}
        shared = self._shared_with(like) if like else {}
        taken: set[int] = set()

        def read(computation: Computation) -> None:
            self._link_computation(computation, shapes, computations)

        for proto in self.proto.computations:
            computation = shared.get(proto.id)
            if computation is None:
                is_lazy = lazy and self.is_scheduled and proto.id not in self.proto.schedule.sequences
                computation = Computation(proto, self, read if is_lazy else None)
                if not is_lazy:
                    read(computation)
            if not (lazy or shared):
                ids = {instruction.id for instruction in computation.instructions}
                if not taken.isdisjoint(ids):
                    self._fail(f"computation {computation.name!r} has an instruction id of another computation")
                taken |= ids
            if computation.id in computations:
                self._fail(f"two computations have id {computation.id}")
            computations[computation.id] = computation
        self.computations = list(computations.values())
        entry = computations.get(self.proto.entry_computation_id)
        if entry is None:
            self._fail(f"no entry computation with id {self.proto.entry_computation_id}")
        self.entry = entry
        for computation_id, sequence in self.proto.schedule.sequences.items():
            if computation_id not in computations:
                self._fail(f"a schedule for a missing computation, id {computation_id}")
            self._link_sequence(computations[computation_id], sequence.instruction_ids)

    def _shared_with(self, like: Module) -> dict[int, Computation]:
        """The other module's computations without a schedule, if all of them are equal here; else none."""
        mine, theirs = self._unscheduled_bytes(), like._unscheduled_bytes()
        return {c.id: c for c in like.computations if c.id in theirs} if mine == theirs else {}

    def _unscheduled_bytes(self) -> dict[int, bytes]:
        """Of each computation without a schedule, by id: quicker to compare than messages."""
        parts = hlo_pb2.HloModuleParts.FromString(self.serialized)
        ids = (proto.id for proto in self.proto.computations)
        scheduled = self.proto.schedule.sequences
        return {id: part for id, part in zip(ids, parts.computations, strict=True) if id not in scheduled}

    def _link_computation(
        self, computation: Computation, shapes: ShapeTable, computations: Mapping[int, Computation]
    ) -> None:
        local: dict[int, Instruction] = {}
        computation.parameters = []
        for proto in computation.proto.instructions:
            try:
                instruction = Instruction(proto, shapes(proto.shape), computation)
                instruction.operands = operands = [local[id] for id in proto.operand_ids]
                instruction.control_predecessors = [local[id] for id in proto.control_predecessor_ids]
                instruction.called = [computations[id] for id in proto.called_computation_ids]
            except KeyError as error:
                self._fail(f"instruction {proto.name!r} refers to id {error}, which does not come before it")
            except ValueError as error:
                self._fail(f"instruction {proto.name!r} has a malformed shape: {error}")
            for operand in operands:
                if not operand.users or operand.users[-1] is not instruction:
                    operand.users.append(instruction)
            if instruction.id in local:
                self._fail(f"two instructions have id {instruction.id}")
            local[instruction.id] = instruction
            if instruction.opcode == "parameter":
                computation.parameters.append(instruction)
            elif instruction.opcode == "get-tuple-element":
                self._check_tuple_element(instruction)
            elif instruction.opcode in ("call", "fusion", "while", "conditional"):
                self._check_call(instruction)
        computation.instructions = computation.sequence = list(local.values())
        computation.parameters.sort(key=lambda parameter: parameter.parameter_number)
        if [p.parameter_number for p in computation.parameters] != list(range(len(computation.parameters))):
            self._fail(f"the parameters of computation {computation.name!r} are not numbered from 0")
        root = local.get(computation.proto.root_id)
        if root is None:
            self._fail(f"computation {computation.name!r} has no instruction with its root's id")
        computation.root = root

    def _check_tuple_element(self, instruction: Instruction) -> None:
        tuple_shapes = instruction.operands[0].shape.tuple_shapes if len(instruction.operands) == 1 else ()
        if not 0 <= instruction.tuple_index < len(tuple_shapes):
            self._fail(f"instruction {instruction.name!r} takes part {instruction.tuple_index} of no such tuple")

    def _check_call(self, instruction: Instruction) -> None:
        if any(callee.read for callee in instruction.called):
            return  # not read yet
        operands, parameters = len(instruction.operands), [len(callee.parameters) for callee in instruction.called]
        match instruction.opcode:
            case "while":
                fits = operands == 1 and parameters == [1, 1]
            case "conditional":
                fits = bool(parameters) and parameters == [1] * (operands - 1)
            case _:
                fits = parameters == [operands]
        if not fits:
            self._fail(f"{instruction.opcode} {instruction.name!r} does not fit the computations that it calls")

    def _link_sequence(self, computation: Computation, ids: Sequence[int]) -> None:
        position = {id: step for step, id in enumerate(ids)}
        local = {instruction.id: instruction for instruction in computation.instructions}
        sequence = [local.get(id) for id in position]
        ordered = [instruction for instruction in sequence if instruction is not None]
        if not len(ids) == len(sequence) == len(ordered) == len(computation.instructions):
            self._fail(f"the schedule of computation {computation.name!r} does not have each instruction once")
        for instruction in ordered:
            step = position[instruction.id]
            for before in (*instruction.operands, *instruction.control_predecessors):
                if position[before.id] >= step:
                    self._fail(f"the schedule runs {instruction.name!r} before {before.name!r}, which it needs")
        computation.sequence = ordered
        computation.is_scheduled = True

    def _check_aliases(self) -> None:
        parameters, result = self.entry.parameters, self.entry.root.shape
        places = [(number, index) for _, number, index, _ in self.input_output_alias] + list(self.buffer_donors)
        try:
            for output_index, *_ in self.input_output_alias:
                result.at(output_index)
            for number, index in places:
                if not 0 <= number < len(parameters):
                    raise IndexError(f"the program has no parameter {number}")
                parameters[number].shape.at(index)
        except IndexError as error:
            self._fail(f"an alias or donation of something that is not there: {error}")

    def _recognize_platform(self) -> str:
        for message in (i for computation in self.proto.computations for i in computation.instructions):
            config: bytes = message.backend_config
            if config:
                for key, platform in _BACKEND_CONFIG_KEYS.items():
                    if key in config:
                        return platform
        return ""
