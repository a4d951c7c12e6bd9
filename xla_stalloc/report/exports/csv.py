"""The packing problem of the temp allocation, as CSV: what `xla-stalloc pack`, MiniMalloc and idealloc read."""

from __future__ import annotations

import csv
import io

import numpy as np

from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.labels import labels


def export(drawn: MemoryMap) -> bytes:
    """A line for each block: values that share memory, from the first one's start to the last one's end.

    Sizes are without padding up to the alignment, which has a column of its own. The format knows one life for each
    buffer: the state of a loop counts as live throughout, although XLA puts others into its memory while it is not, so
    XLA's own packing may be lower than any of this problem.
    """
    names = labels(drawn).name
    boxes = np.flatnonzero((drawn.band == 0) & (drawn.end > drawn.start))
    blocks: dict[int, list[int]] = {}
    for box in boxes.tolist():
        blocks.setdefault(int(drawn.block[box]), []).append(box)
    rows = []
    for members in blocks.values():
        first = min(members, key=lambda box: int(drawn.start[box]))
        begin, end = int(drawn.start[first]), max(int(drawn.end[box]) for box in members)
        rows.append((begin, end, names[first], max(int(drawn.bytes[box]) for box in members)))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("id", "lower", "upper", "size", "alignment"))
    for begin, end, name, size in sorted(rows):
        table.writerow((name, begin, end, size, drawn.alignment))
    return text.getvalue().encode()
