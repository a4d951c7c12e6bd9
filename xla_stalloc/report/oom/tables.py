"""The tables around an out-of-memory message: parts of the need, live blocks, an allocator's statistics."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xla_stalloc.report.sizes import parse as to_bytes


@dataclass(frozen=True, slots=True)
class Block:
    """A block of memory that was live, as a compiler lists it; ``""``: not told.

    Attributes:
        bytes: with padding.
        unpadded_bytes: without; None if not told.
        label: instruction, ``%copy.40488`` for example.
        shape: with its layout.
        op_name: path of the operation in the user's program.
        source: ``file:line``.
    """

    bytes: int
    unpadded_bytes: int | None = None
    label: str = ""
    shape: str = ""
    op_name: str = ""
    source: str = ""


_AMOUNT = r"(\d[\d,]*(?:\.\d+)?[KMGTP]?(?:i?B)?)(?![\w.])"
# "    HLO temp   41.19G (24.2% utilization ...", "HBM capacity 8.00G:", "parameter allocation:   6.00MiB"
_PART = re.compile(
    r"^\W*(reserved|program|arguments|output|global|scoped|HLO temp|overlays|heap allocations|Currently allocated|"
    r"HBM capacity|parameter allocation|constant allocation|maybe_live_out allocation|preallocated temp allocation|"
    r"total allocation|total fragmentation|Max free chunk)(?: ?\([^)\n]*\))?:?\s+" + _AMOUNT,
    re.MULTILINE,
)
_BLOCK = re.compile(r"^\s*(?:\d+\. )?Size: +" + _AMOUNT, re.MULTILINE)
_END_OF_BLOCK = re.compile(r"={10,}|\n\s*\n")
_FIELDS = {
    "label": re.compile(r"XLA [Ll]abel: +(%?[\w.\-]+)"),
    "shape": re.compile(r"(?:Shape|Subshape): +(\S+)"),
    "op_name": re.compile(r'op_name="([^"]*)"'),
}
_SOURCE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
_UNPADDED = re.compile(r"Unpadded size: +" + _AMOUNT)

_STATISTICS = {
    "Limit": "limit_bytes",
    "InUse": "resident_bytes",
    "LargestFreeBlock": "largest_free_bytes",
}
_STATISTIC = re.compile(r"\b(Limit|InUse|LargestFreeBlock): +" + _AMOUNT)
_ALLOCATOR = re.compile(
    r"(bfc)_allocator|(cuda_?malloc_?async|cuMemAllocAsync|gpu_async_\d)|\w+_(bfc)\b", re.IGNORECASE
)


def parts(text: str) -> dict[str, int]:
    """Bytes of the parts of the need, by the names in the compiler's tables in lower case; first mention counts."""
    found: dict[str, int] = {}
    for match in _PART.finditer(text):
        # "reserved" stands in the device's table and again in the program's.
        found.setdefault(match[1].lower(), to_bytes(match[2]))
    return found


def blocks(text: str) -> tuple[Block, ...]:
    """The blocks that a compiler lists, largest first."""
    found = []
    for match in _BLOCK.finditer(text):
        ended = _END_OF_BLOCK.search(text, match.end())
        body = text[match.start() : ended.start() if ended else len(text)]
        fields = {name: told[1] for name, pattern in _FIELDS.items() if (told := pattern.search(body))}
        source, unpadded = _SOURCE.search(body), _UNPADDED.search(body)
        found.append(
            Block(
                bytes=to_bytes(match[1]),
                unpadded_bytes=to_bytes(unpadded[1]) if unpadded else None,
                source=f"{source[1]}:{source[2]}" if source else "",
                **fields,
            )
        )
    # A text that is printed twice lists its blocks twice.
    return tuple(sorted(dict.fromkeys(found), key=lambda block: -block.bytes))


def statistics(text: str) -> tuple[str, dict[str, int]]:
    """Which allocator speaks in a log, and its last statistics by the attributes of `OutOfMemory`."""
    found = {_STATISTICS[match[1]]: to_bytes(match[2]) for match in _STATISTIC.finditer(text)}
    if not found.get("limit_bytes"):
        found.pop("limit_bytes", None)  # 0 stands for no limit
    if not found.get("largest_free_bytes"):
        found.pop("largest_free_bytes", None)  # 0 stands for not counted
    if "limit_bytes" in found and "resident_bytes" in found:
        found["free_bytes"] = max(0, found["limit_bytes"] - found["resident_bytes"])
    spoken = _ALLOCATOR.search(text)
    return ("" if spoken is None else "cuda_async" if spoken[2] else "bfc"), found
