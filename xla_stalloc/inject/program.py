"""One program on its way through the compiler, and the executables that come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from xla_stalloc.plan.options import DEFAULT_CARD
from xla_stalloc.scheduling.cost import card_of


@dataclass(frozen=True)
class Program:
    """A StableHLO module together with the way to compile it.

    Attributes:
        backend: JAX's client of the platform.
        computation: The module, an ``ir.Module``.
        step: Compiles a module, with further options of XLA; returns an executable of ``jaxlib``.
        serialize: Gives the bytes of an executable of this program that has not run yet.
        load: Makes an executable of ``jaxlib`` from such bytes, for the same devices.
        xla_options: The options of XLA that the user has set for this program.
        devices: The ids of its devices, in the order of its partitions and replicas.
        processes: The indices of the processes that have these devices, ascending.
        device_kind: What the devices call themselves.
        has_callbacks: Whether it calls functions of this process, which a serialized executable does not hold.
    """

    backend: Any
    computation: Any
    step: Callable[[Any, dict[str, str]], Any]
    serialize: Callable[[Any], bytes]
    load: Callable[[bytes], Any]
    xla_options: Mapping[str, Any] = field(default_factory=dict)
    devices: tuple[int, ...] = ()
    processes: tuple[int, ...] = ()
    device_kind: str = ""
    has_callbacks: bool = False

    @property
    def name(self) -> str:
        """The name of the module, e.g. ``jit_train_step``."""
        from jax.extend.mlir import ir

        return str(ir.StringAttr(self.computation.operation.attributes["sym_name"]).value)

    @property
    def platform(self) -> str:
        """The backend's word for its platform: ``cpu``, ``gpu``, ``tpu``."""
        return str(self.backend.platform)

    @property
    def card(self) -> str:
        """The GPU whose times orders are compared by."""
        return card_of(self.device_kind, DEFAULT_CARD)

    def compile(self, computation: Any = None, **xla_options: str) -> Any:
        """Compiles the program, or a copy of it, with XLA options of ours behind those of the user."""
        return self.step(self.computation if computation is None else computation, xla_options)

    def has_fewer_operations_than(self, limit: int) -> bool:
        """Whether the module is that small; looks at no more operations than the limit."""
        remaining = [self.computation.operation]
        seen = 0
        while remaining:
            for region in remaining.pop().regions:
                for block in region.blocks:
                    for operation in block.operations:
                        seen += 1
                        if seen >= limit:
                            return False
                        remaining.append(operation.operation)
        return True

    def aliases_arguments(self) -> bool:
        """Whether outputs surely take the storage of donated arguments."""
        for function in self.computation.body.operations:
            attributes = function.operation.attributes
            if "arg_attrs" in attributes and any("tf.aliasing_output" in a for a in attributes["arg_attrs"]):
                return True
        return False


class Size(NamedTuple):
    """Memory of one executable on one device, in bytes, as XLA reports it."""

    temp: int
    alias: int

    @property
    def beyond_arguments(self) -> int:
        """What to compare two executables of a program by: arguments and outputs are equal, sharing them is not."""
        return self.temp - self.alias


def size_of(executable: Any) -> Size | None:
    """The size of an executable of ``jaxlib``; None where the runtime does not report it."""
    try:
        stats = executable.get_compiled_memory_stats()
        return Size(int(stats.temp_size_in_bytes), int(stats.alias_size_in_bytes))
    except Exception:
        # Some runtimes implement no memory statistics; that must not fail a compile.
        return None
