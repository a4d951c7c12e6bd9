"""One device's part of a lowered step, before any compiler has run: operations, and bytes of their values.

Shardy (the partitioner of XLA, a part of jaxlib) carries the shardings of the arguments through the whole program and
says where devices have to exchange data. That takes a fraction of a second; compiling takes minutes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

_PASSES = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives)",
    "cse",
)
_BITS = re.compile(r"\d+")
_COMPLEX = 2


@dataclass(eq=False, slots=True)
class Value:
    """What an operation makes, or a region is given.

    Attributes:
        bytes: on one device, unpadded.
        shape: on one device.
    """

    bytes: int
    shape: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class Operation:
    """One operation of a region.

    Attributes:
        name: such as `stablehlo.add` or `sdy.all_gather`.
        operands: that it reads itself, and those that its regions read of what lies around them.
        results: what it makes.
        regions: the condition and the body of a loop, the branches of a choice.
        repeats: how often a loop turns; 1 if that is not known.
        sharing: devices that exchange data, if it is a collective.
        flops: on one device, if it is a product of matrices.
    """

    name: str
    operands: list[Value]
    results: list[Value]
    regions: list[Region] = field(default_factory=list)
    repeats: int = 1
    sharing: int = 1
    flops: int = 0


@dataclass(eq=False, slots=True)
class Region:
    """Operations in order.

    Attributes:
        arguments: values that it is given.
        operations: without the last one, which only hands values back.
        returned: the values that it hands back.
    """

    arguments: list[Value]
    operations: list[Operation] = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """A whole program.

    Attributes:
        region: the entry function, with all calls inlined.
        aliases: result number -> number of the argument whose memory it takes over.
    """

    region: Region
    aliases: dict[int, int]


def partition(lowered: Any) -> Step:
    """The program of one device, of a `jax.stages.Lowered`. It leaves the lowered program as it is."""
    from jax.extend.mlir import ir, passmanager

    module = lowered.compiler_ir("stablehlo")
    with module.context:
        copy = ir.Module.parse(module.operation.get_asm(enable_debug_info=False))
        passmanager.PassManager.parse(f"builtin.module({','.join(_PASSES)})").run(copy.operation)
        return _Reader(copy).step()


class _Reader:
    def __init__(self, module: Any) -> None:
        self.functions: dict[str, Any] = {}
        self.meshes: dict[str, dict[str, int]] = {}
        for op in module.body.operations:
            name = op.operation.name
            if name == "func.func":
                self.functions[op.attributes["sym_name"].value] = op
            elif name == "sdy.mesh":
                self.meshes[op.attributes["sym_name"].value] = _axes(op.attributes["mesh"])

    def step(self) -> Step:
        function = self.functions["main"]
        attributes = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
        block = function.regions[0].blocks[0]
        shardings = [_get(a, "sdy.sharding") for a in attributes] or [None] * len(block.arguments)
        arguments = [
            self.value(value.type, sharding) for value, sharding in zip(block.arguments, shardings, strict=True)
        ]
        outputs = {}
        donors = []
        for number, attribute in enumerate(attributes):
            if (alias := _get(attribute, "tf.aliasing_output")) is not None:
                outputs[alias.value] = number
            elif _get(attribute, "jax.buffer_donor") is not None:
                donors.append(number)
        region = self.region(block, arguments, {})
        # Donors without an output of their own: XLA gives them to outputs of their size.
        for number, value in enumerate(region.returned):
            fitting = [donor for donor in donors if arguments[donor].bytes == value.bytes]
            if number not in outputs and fitting:
                outputs[number] = fitting[0]
                donors.remove(fitting[0])
        return Step(region, outputs)

    def region(self, block: Any, arguments: list[Value], outer: dict[Any, Value]) -> Region:
        known = {**outer, **dict(zip(block.arguments, arguments, strict=True))}
        region = Region(arguments)
        for op in block.operations:
            region.returned = self.add(op, known, region)
        return region

    def add(self, op: Any, known: dict[Any, Value], region: Region) -> list[Value]:
        """Appends an operation, or those of the function that it calls; returns the operands of a return."""
        name = op.operation.name
        operands = [known[value] for value in op.operands]
        if name.endswith(".return"):
            return operands
        if name == "func.call":
            callee = self.functions[op.attributes["callee"].value].regions[0].blocks[0]
            inner = self.region(callee, operands, {})
            region.operations += inner.operations
            known.update(zip(op.results, inner.returned, strict=True))
            return []
        shardings = self.result_shardings(op)
        results = [self.value(v.type, s) for v, s in zip(op.results, shardings, strict=True)]
        known.update(zip(op.results, results, strict=True))
        made = Operation(name, operands, results)
        if name in ("stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.optimization_barrier"):
            for inner_region in op.regions:
                block = inner_region.blocks[0]
                inputs = [
                    Value(operand.bytes, operand.shape) for operand, _ in zip(operands, block.arguments, strict=False)
                ]
                made.regions.append(self.region(block, inputs, known))
            made.operands = [*operands, *(value for value in _captured(made.regions) if value not in operands)]
        if name == "stablehlo.while":
            made.repeats = _trips(op)
        if name == "stablehlo.dot_general":
            made.flops = _flops(op, operands[0], results[0])
        if name.startswith("sdy."):
            made.sharing = self.sharing(op)
        if name == "sdy.all_gather":
            # The partitioner remembers what it has gathered; it lives on until its last reader.
            for earlier in region.operations:
                same = earlier.name == name and earlier.operands == operands
                if same and [v.shape for v in earlier.results] == [v.shape for v in results]:
                    known.update(zip(op.results, earlier.results, strict=True))
                    return []
        region.operations.append(made)
        return []

    def result_shardings(self, op: Any) -> list[Any]:
        from jax.extend.mlir.dialects import sdy

        attributes = op.attributes
        if "sdy.sharding" in attributes:
            return list(sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings)
        for key in ("out_sharding", "sharding"):
            if key in attributes:
                return [attributes[key]] * len(op.results)
        return [None] * len(op.results)

    def value(self, type: Any, sharding: Any) -> Value:
        """A tensor's part on one device; uneven parts are rounded up, as they are padded."""
        try:
            shape = list(type.shape)
        except AttributeError:
            return Value(0)  # a token
        if sharding is not None:
            axes = self.axes(sharding)
            for number, split in enumerate(_splits(sharding, axes)):
                shape[number] = -(-shape[number] // split)
        return Value(math.prod(shape) * _element_bits(str(type.element_type)) // 8, tuple(shape))

    def axes(self, sharding: Any) -> dict[str, int]:
        from jax.extend.mlir import ir
        from jax.extend.mlir.dialects import sdy

        mesh = sdy.TensorShardingAttr(sharding).mesh_or_ref
        if isinstance(mesh, ir.FlatSymbolRefAttr):
            return self.meshes[ir.FlatSymbolRefAttr(mesh).value]
        return _axes(mesh)

    def sharing(self, op: Any) -> int:
        """Devices of a collective: those along the mesh axes that it names."""
        attributes = op.attributes
        if "out_sharding" not in attributes:
            return 1
        axes = self.axes(attributes["out_sharding"])
        for key in ("reduction_axes", "gathering_axes", "reduce_scatter_axes"):
            if key in attributes:
                named = re.findall(r'"(\w+)"(?::\(\d+\)(\d+))?', str(attributes[key]))
                return math.prod(int(part) if part else axes[name] for name, part in named)
        return max(axes.values(), default=1)


def _get(attributes: Any, key: str) -> Any:
    return attributes[key] if key in attributes else None  # noqa: SIM401  it is no Python dict


def _flops(dot: Any, left: Value, result: Value) -> int:
    from jax.extend.mlir.dialects import stablehlo

    numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
    return 2 * math.prod(result.shape) * math.prod(left.shape[d] for d in numbers.lhs_contracting_dimensions)


def _axes(mesh: Any) -> dict[str, int]:
    from jax.extend.mlir.dialects import sdy

    return {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh).axes)}


def _splits(sharding: Any, axes: dict[str, int]) -> list[int]:
    """Into how many parts each dimension is cut."""
    from jax.extend.mlir.dialects import sdy

    def size(axis: Any) -> int:
        part = axis.sub_axis_info
        return int(axes[axis.name] if part is None else sdy.SubAxisInfoAttr(part).size)

    dimensions = map(sdy.DimensionShardingAttr, sdy.TensorShardingAttr(sharding).dimension_shardings)
    return [math.prod(size(sdy.AxisRefAttr(axis)) for axis in dimension.axes) for dimension in dimensions]


def _element_bits(name: str) -> int:
    if name.startswith("complex"):
        return _COMPLEX * _element_bits(name[len("complex<") : -1])
    digits = _BITS.search(name)
    bits = int(digits[0]) if digits else 32
    return 8 if bits == 1 else bits


def _captured(regions: list[Region]) -> list[Value]:
    """What regions read and do not make."""
    found: dict[Value, None] = {}
    for region in regions:
        own = set(region.arguments)
        for op in region.operations:
            found.update((value, None) for value in op.operands if value not in own)
            own.update(op.results)
        found.update((value, None) for value in region.returned if value not in own)
    return list(found)


def _trips(loop: Any) -> int:
    """How often a loop of `jax.lax.scan` turns: its condition compares a counter with a constant."""
    condition = list(loop.regions[0].blocks[0].operations)
    for op in condition:
        if op.operation.name == "stablehlo.compare":
            bound = op.operands[1]
            owner = bound.owner
            if hasattr(owner, "attributes") and "value" in owner.attributes:
                digits = re.search(r"dense<(\d+)>", str(owner.attributes["value"]))
                return int(digits[1]) if digits else 1
    return 1
