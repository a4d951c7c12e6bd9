"""What XLA loses when it takes a module back from the hook, by version.

jaxlib 0.10 puts a new entry computation into the old module, and with that resets what the module knew of the old one:
which outputs share the storage of which arguments, and the layouts of arguments and outputs. A donated argument would
silently keep its storage, and a custom layout would be misread. Later versions carry both over.
"""

from __future__ import annotations

from typing import Any

import jaxlib.version

from xla_stalloc.hlo.schema import hlo_pb2

RESETS_ENTRY = jaxlib.version.__version_info__ < (0, 11)


def lost(serialized: bytes) -> str:
    """What this jaxlib would lose of a serialized ``HloModuleProto``; ``""`` if nothing."""
    if not RESETS_ENTRY:
        return ""
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    if module.input_output_alias.entries or module.buffer_donor.entries:
        return "jaxlib 0.10 would lose the donation of arguments"
    entry = next(c for c in module.computations if c.id == module.entry_computation_id)
    boundary = [i.shape for i in entry.instructions if i.opcode == "parameter" or i.id == entry.root_id]
    if not all(_default_layout(shape) for shape in boundary):
        return "jaxlib 0.10 would lose the layouts of arguments and outputs"
    return ""


def _default_layout(shape: Any) -> bool:
    if shape.tuple_shapes:
        return all(_default_layout(s) for s in shape.tuple_shapes)
    order = list(shape.layout.minor_to_major)
    return order == sorted(order, reverse=True)
