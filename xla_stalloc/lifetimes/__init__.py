"""From a scheduled module to buffers with exact live ranges, aliases, colocation and memory spaces.

`of(module)` is the way in. What it says equals what XLA's own live range dump and heap traces say
(docs/lifetimes.md names the exceptions).
"""

from xla_stalloc.lifetimes.analysis import Assignment, Lifetimes, of
from xla_stalloc.lifetimes.buffers import Buffer, Kind
from xla_stalloc.lifetimes.dataflow import UnsupportedModuleError, Value

__all__ = ["Assignment", "Buffer", "Kind", "Lifetimes", "UnsupportedModuleError", "Value", "of"]
