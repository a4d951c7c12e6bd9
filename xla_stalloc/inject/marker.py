"""Marks: how a program says that it is to be planned, and an executable what its plan was.

Both are entries of the module's ``frontend_attributes``, the place that XLA keeps for what it does not interpret. The
request is put on the StableHLO module, so it becomes part of the key of the persistent compilation cache by itself:
planned and stock programs never share an entry, and no private part of JAX needs to know. XLA carries it to the
post-scheduler hook, which acts on marked modules only. The record goes the same way onwards: it is inside the compiled
executable, and comes back with it from the persistent cache, in any process.
"""

from __future__ import annotations

from typing import Any

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.plan.options import PLANNER_VERSION, PlanOptions
from xla_stalloc.plan.record import PlanRecord

REQUEST = "xla_stalloc.request"
RECORD = "xla_stalloc.record"
_MLIR_ATTRIBUTE = "mhlo.frontend_attributes"


def marked(computation: Any, options: PlanOptions) -> Any:
    """Returns a copy of a StableHLO module (``ir.Module``) that asks to be planned; the original stays as it is.

    A copy, since another thread may be compiling, printing or hashing the original at this moment.
    """
    from jax.extend.mlir import ir

    with computation.context:
        source = computation.operation
        copy = ir.Module.create(source.location)
        end = ir.InsertionPoint(copy.body)
        for operation in source.regions[0].blocks[0].operations:
            operation.operation.clone(end)
        attributes = copy.operation.attributes
        for name in _names(source.attributes):
            attributes[name] = source.attributes[name]
        frontend = {}
        if _MLIR_ATTRIBUTE in source.attributes:
            existing = ir.DictAttr(source.attributes[_MLIR_ATTRIBUTE])
            frontend = {name: existing[name] for name in _names(existing)}
        frontend[REQUEST] = ir.StringAttr.get(_encode(options))
        attributes[_MLIR_ATTRIBUTE] = ir.DictAttr.get(frontend)
    return copy


def _names(attributes: Any) -> list[str]:
    """The names in a dictionary of MLIR attributes; iteration gives names or named attributes, by jaxlib's version."""
    return [entry if isinstance(entry, str) else entry.name for entry in attributes]


def request_of(serialized: bytes) -> tuple[str, PlanOptions] | None:
    """Name and request of a serialized ``HloModuleProto``; None, and quickly, for a module that asks for nothing."""
    if REQUEST.encode() not in serialized:
        return None
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    text = module.frontend_attributes.map.get(REQUEST)
    return None if text is None else (module.name, _decode(text))


def with_record(serialized: bytes, record: PlanRecord) -> bytes:
    """Returns the serialized ``HloModuleProto`` with the record inside.

    Times are left out: every process of a job must compile the same bytes. Appending is enough, since protobuf merges
    a message that comes twice.
    """
    timeless = record.replace(plan_seconds=0.0, compile_seconds=0.0)
    addition = hlo_pb2.HloModuleProto(frontend_attributes=hlo_pb2.FrontendAttributes(map={RECORD: timeless.to_json()}))
    return serialized + addition.SerializeToString()


def record_of(serialized: bytes) -> PlanRecord | None:
    """The record inside a serialized ``HloModuleProto``; None if there is none, or none that can be read."""
    if RECORD.encode() not in serialized:
        return None
    text = hlo_pb2.HloModuleProto.FromString(serialized).frontend_attributes.map.get(RECORD)
    try:
        return None if text is None else PlanRecord.from_json(text)
    except ValueError:
        return None


def _encode(options: PlanOptions) -> str:
    return f"{options.mode};budget={options.budget_seconds!r};planner={PLANNER_VERSION}"


def _decode(text: str) -> PlanOptions:
    mode, budget, *_ = text.split(";")
    return PlanOptions(mode, float(budget.removeprefix("budget=")))
