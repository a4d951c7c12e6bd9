"""Marks: how a program says that it is to be planned, and an executable what its plan was.

Both are ``frontend_attributes``, the place that XLA keeps for what it does not interpret. The request is put on the
StableHLO module, so it becomes part of the key of the persistent compilation cache by itself: planned and stock
programs never share an entry, and no private part of JAX needs to know. XLA carries it to the post-scheduler hook,
which acts on marked modules only. The record goes the same way onwards: it is inside the compiled executable, and
comes back with it from the persistent cache, in any process.
"""

from __future__ import annotations

import dataclasses
import json
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

    It sits on a parameter of the entry computation, since XLA takes instructions back from the hook but not what
    belongs to the module, and makes no code for parameters. Times are left out: every process of a job must compile
    the same bytes.

    Raises:
        google.protobuf.message.DecodeError: The bytes are no ``HloModuleProto``.
    """
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    carrier = min(_entry(module), key=lambda instruction: instruction.opcode != "parameter")
    carrier.frontend_attributes.map[RECORD] = record.replace(plan_seconds=0.0, compile_seconds=0.0).to_json()
    result: bytes = module.SerializeToString()
    return result


def record_of(serialized: bytes) -> PlanRecord | None:
    """The record inside a serialized ``HloModuleProto``; None if there is none, or none that can be read."""
    if RECORD.encode() not in serialized:
        return None
    for instruction in _entry(hlo_pb2.HloModuleProto.FromString(serialized)):
        if RECORD in instruction.frontend_attributes.map:
            try:
                return PlanRecord.from_json(instruction.frontend_attributes.map[RECORD])
            except ValueError:
                return None
    return None


def _entry(module: Any) -> Any:
    """The instructions of the entry computation."""
    return next(c.instructions for c in module.computations if c.id == module.entry_computation_id)


def _encode(options: PlanOptions) -> str:
    return json.dumps({**dataclasses.asdict(options), "planner": PLANNER_VERSION}, sort_keys=True)


def _decode(text: str) -> PlanOptions:
    raw = json.loads(text)
    del raw["planner"]
    return PlanOptions(**raw)
