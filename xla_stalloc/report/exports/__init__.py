"""Memory maps in the formats of other tools: one file for each format."""

from __future__ import annotations

import importlib
from typing import cast

from xla_stalloc.report.map.boxes import MemoryMap

FORMATS = {
    "memory_viz": "PyTorch's snapshot of an allocator, for https://pytorch.org/memory_viz",
    "perfetto": "a trace of buffers and live bytes, for https://ui.perfetto.dev",
    "csv": "the packing problem of the temp allocation, for `pack`, MiniMalloc and idealloc",
    "pprof": "what is live at the peak by call stack, for `go tool pprof`",
}


def export(drawn: MemoryMap, form: str) -> bytes:
    """A map in another tool's format; `form` is one of `FORMATS`."""
    module = importlib.import_module(f"xla_stalloc.report.exports.{form}")
    return cast(bytes, module.export(drawn))
