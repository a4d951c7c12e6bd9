"""Shapes: element types, dimensions, layouts, and the bytes that a value of a shape takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from xla_stalloc.hlo.schema import hlo_pb2

ShapeIndex = tuple[int, ...]
"""Where a value sits inside a nested tuple: () is the whole, (1, 0) the first part of the second part."""

# XLA's PrimitiveType: number in the protobuf -> (name in HLO text, bits). Types without data have 0 bits.
_PRIMITIVE_TYPES = {
    1: ("pred", 8),
    30: ("s1", 1),
    26: ("s2", 2),
    21: ("s4", 4),
    2: ("s8", 8),
    3: ("s16", 16),
    4: ("s32", 32),
    5: ("s64", 64),
    31: ("u1", 1),
    27: ("u2", 2),
    22: ("u4", 4),
    6: ("u8", 8),
    7: ("u16", 16),
    8: ("u32", 32),
    9: ("u64", 64),
    10: ("f16", 16),
    11: ("f32", 32),
    12: ("f64", 64),
    16: ("bf16", 16),
    32: ("f4e2m1fn", 4),
    19: ("f8e5m2", 8),
    20: ("f8e4m3fn", 8),
    23: ("f8e4m3b11fnuz", 8),
    24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8),
    28: ("f8e4m3", 8),
    29: ("f8e3m4", 8),
    33: ("f8e8m0fnu", 8),
    15: ("c64", 64),
    18: ("c128", 128),
    13: ("tuple", 0),
    14: ("opaque", 0),
    17: ("token", 0),
    34: ("buffer", 0),
}
_BITS = dict(_PRIMITIVE_TYPES.values())
_POINTER_BYTES = 8
_DYNAMIC_DIMENSION_BYTES = 4  # the runtime size of each dimension follows a dynamic array, as an s32
_COMBINE_DIMENSION = -(2**63)  # XLA's marker in a tile: this dimension is merged with the next more minor one


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The type, dimensions and layout of a value; for a tuple, those of its parts.

    Two shapes are equal if type, dimensions and layout (memory space and tiles included) are. Immutable; modules share
    one object between all instructions of the same shape.

    Attributes:
        element_type: name in HLO text ("f32", "bf16", "pred", ...), or "tuple", "token", "opaque", "buffer".
        dimensions: elements per dimension; upper bounds where `dynamic_dimensions` says so.
        minor_to_major: dimension numbers from the fastest varying one; empty if the program has no layouts yet.
        tuple_shapes: the parts of a tuple; of a "buffer", the one array it wraps.
        memory_space: the backend's number for the memory that holds the value; 0 is its default memory.
        tiles: the tiling of the layout, first tile first.
        element_bits: bits per element if the layout packs them (s4 in four bits), else 0.
        tail_alignment: elements that the padded array is a multiple of; 0 or 1 for none.
        dynamic_dimensions: which dimensions have their size at run time; empty if none has.
        byte_size: bytes of the top-level buffer without tile padding, as XLA's CPU and GPU backends count them: for a
            tuple its table of pointers, for a token 0. Tuple parts have buffers of their own.
    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    minor_to_major: tuple[int, ...] = ()
    tuple_shapes: tuple[Shape, ...] = ()
    memory_space: int = 0
    tiles: tuple[tuple[int, ...], ...] = ()
    element_bits: int = 0
    tail_alignment: int = 0
    dynamic_dimensions: tuple[bool, ...] = ()
    byte_size: int = field(init=False, compare=False, repr=False)
    _subshapes: tuple[tuple[ShapeIndex, Shape], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Work out once what is asked for often."""
        object.__setattr__(self, "byte_size", self._count_bytes())
        subshapes: list[tuple[ShapeIndex, Shape]] = [((), self)]
        if self.is_tuple:
            for position, part in enumerate(self.tuple_shapes):
                subshapes += [((position, *index), inner) for index, inner in part._subshapes]
        object.__setattr__(self, "_subshapes", tuple(subshapes))

    def __eq__(self, other: object) -> bool:
        """Whether all that makes a shape is equal; most often both are the same object, or differ in size."""
        if self is other:
            return True
        return isinstance(other, Shape) and self.byte_size == other.byte_size and self._key() == other._key()

    def __hash__(self) -> int:
        """Equal for equal shapes."""
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, part.name) for part in fields(self) if part.compare)

    def _count_bytes(self) -> int:
        match self.element_type:
            case "tuple":
                return _POINTER_BYTES * len(self.tuple_shapes)
            case "token":
                return 0
            case "opaque":
                return _POINTER_BYTES
            case "buffer":
                return self.tuple_shapes[0].byte_size
        # Without a packed layout a sub-byte element takes a whole byte.
        bits = self.element_bits or max(_BITS[self.element_type], 8)
        size = -(-math.prod(self.dimensions) * bits // 8)
        return size + (_DYNAMIC_DIMENSION_BYTES * len(self.dimensions) if any(self.dynamic_dimensions) else 0)

    @property
    def is_tuple(self) -> bool:
        """Whether the value is a tuple, possibly an empty one."""
        return self.element_type == "tuple"

    @property
    def is_array(self) -> bool:
        """Whether the value is an array (scalars included): no tuple, token, opaque value or buffer."""
        return bool(_BITS[self.element_type])

    def subshapes(self) -> tuple[tuple[ShapeIndex, Shape], ...]:
        """The shape itself and everything nested in it, in pre-order, with the index of each."""
        return self._subshapes

    def at(self, index: ShapeIndex) -> Shape:
        """The shape at an index.

        Raises:
            IndexError: there is no such part.
        """
        shape = self
        for position in index:
            if not shape.is_tuple or not 0 <= position < len(shape.tuple_shapes):
                raise IndexError(f"{self} has no part {index}")
            shape = shape.tuple_shapes[position]
        return shape

    def __str__(self) -> str:
        """The shape as in HLO text, e.g. "f32[8,128]{1,0:T(8,128)S(1)}"."""
        parts = ", ".join(map(str, self.tuple_shapes))
        if self.is_tuple:
            return f"({parts})"
        if self.element_type == "buffer":
            return f"b({parts})"
        bounds = self.dynamic_dimensions or (False,) * len(self.dimensions)
        sizes = ",".join(f"<={d}" if bound else str(d) for d, bound in zip(self.dimensions, bounds, strict=True))
        return f"{self.element_type}[{sizes}]{self._layout_text()}"

    def _layout_text(self) -> str:
        details = ""
        if self.tiles:
            details += "T" + "".join(f"({','.join(_tile_dimension(d) for d in tile)})" for tile in self.tiles)
        if self.tail_alignment > 1:
            details += f"L({self.tail_alignment})"
        if self.element_bits:
            details += f"E({self.element_bits})"
        if self.memory_space:
            details += f"S({self.memory_space})"
        if not self.minor_to_major and not details:
            return ""
        return "{" + ",".join(map(str, self.minor_to_major)) + (f":{details}" if details else "") + "}"


def _tile_dimension(dimension: int) -> str:
    return "*" if dimension == _COMBINE_DIMENSION else str(dimension)


class ShapeTable:
    """Builds shapes from their messages, one object per distinct shape.

    A module has tens of thousands of instructions and some hundred distinct shapes; the serialized message is the key.
    """

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        """An empty table."""
        self._shapes: dict[bytes, Shape] = {}

    def __call__(self, proto: hlo_pb2.ShapeProto) -> Shape:
        """The shape of a message.

        Raises:
            ValueError: the message contradicts itself or has an element type that this version does not know.
        """
        key = proto.SerializeToString()
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._build(proto)
        return shape

    def _build(self, proto: hlo_pb2.ShapeProto) -> Shape:
        if proto.element_type not in _PRIMITIVE_TYPES:
            raise ValueError(f"unknown element type {proto.element_type}")
        name, bits = _PRIMITIVE_TYPES[proto.element_type]
        rank = len(proto.dimensions)
        layout = proto.layout
        dynamic = tuple(proto.is_dynamic_dimension)
        parts = tuple(self(part) for part in proto.tuple_shapes)
        if any(size < 0 for size in proto.dimensions) or (rank and not bits):
            raise ValueError(f"{name} of dimensions {list(proto.dimensions)}")
        if layout.minor_to_major and sorted(layout.minor_to_major) != list(range(rank)):
            raise ValueError(f"layout {list(layout.minor_to_major)} for {rank} dimensions")
        if layout.element_size_in_bits < 0 or (dynamic and len(dynamic) != rank):
            raise ValueError(f"{name} array with a malformed layout")
        if (parts and name not in ("tuple", "buffer")) or (name == "buffer" and len(parts) != 1):
            raise ValueError(f"{name} with {len(parts)} parts")
        return Shape(
            element_type=name,
            dimensions=tuple(proto.dimensions),
            minor_to_major=tuple(layout.minor_to_major),
            tuple_shapes=parts,
            memory_space=layout.memory_space,
            tiles=tuple(tuple(tile.dimensions) for tile in layout.tiles),
            element_bits=layout.element_size_in_bits,
            tail_alignment=layout.tail_padding_alignment_in_elements,
            dynamic_dimensions=dynamic if any(dynamic) else (),
        )
