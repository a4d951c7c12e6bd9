"""What XLA's compilers and runtimes say when memory runs out, read from an error's text or from a whole log.

The wordings are those of XLA:CPU (`Out of memory allocating`), XLA:GPU and its allocators (`bfc_allocator.cc`,
`cuda_async`'s ``cuMemAllocAsync failed``), and XLA:TPU (``docs/errors`` 0100, 0101, 1000 and 1001 of openxla/xla).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xla_stalloc.report.oom.tables import Block, blocks, parts, statistics
from xla_stalloc.report.sizes import parse as to_bytes

_SIZE = r"\d[\d,]*(?:\.\d+)? ?(?:[KMGTP]i?B?|bytes|B)?(?![\w])"


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """An out-of-memory error. None and ``""``: not told.

    Attributes:
        message: the words that tell it.
        platform: ``cpu``, ``gpu``, ``tpu``.
        phase: ``compile``; ``load``, of a program onto the device; ``run``, which is any allocation.
        space: memory space, ``hbm`` or ``vmem`` for example.
        allocator: ``bfc`` or ``cuda_async``.
        program: name of the module, ``jit_step`` for example.
        device: as the message names it.
        requested_bytes: asked for at once.
        needed_bytes: by everything together, where a compiler tells.
        limit_bytes: that there are to hand out.
        resident_bytes: handed out before the request.
        free_bytes: not handed out.
        largest_free_bytes: in one piece.
        card_bytes: of the whole device.
        card_free_bytes: of the whole device, free for any process.
        parts: what the compiler's tables break the need into, by their names.
        blocks: that were live, largest first.
    """

    message: str
    platform: str = ""
    phase: str = ""
    space: str = ""
    allocator: str = ""
    program: str = ""
    device: str = ""
    requested_bytes: int | None = None
    needed_bytes: int | None = None
    limit_bytes: int | None = None
    resident_bytes: int | None = None
    free_bytes: int | None = None
    largest_free_bytes: int | None = None
    card_bytes: int | None = None
    card_free_bytes: int | None = None
    parts: dict[str, int] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class _Wording:
    """One way to say it; groups of the pattern that are sizes are named as the attributes of `OutOfMemory`."""

    pattern: re.Pattern[str]
    platform: str
    phase: str
    space: str = ""
    allocator: str = ""


def _wording(pattern: str, platform: str, phase: str, space: str = "", allocator: str = "") -> _Wording:
    named = re.sub(r"(?<!P)<(\w+)>", lambda size: f"(?P<{size[1]}_bytes>{_SIZE})", pattern)
    return _Wording(re.compile(named, re.DOTALL), platform, phase, space, allocator)


# Best first: where several say the same failure, the earlier tells more of it.
_WORDINGS = (
    _wording(r"Ran out of memory in memory space (?P<space>\w+)\. Used <needed> of <limit> \w+", "tpu", "compile"),
    _wording(r"[Uu]sed <needed> of <limit> hbm", "", "compile", "hbm"),
    _wording(
        r"total memory required for [\w ]+\(<needed>\) exceeds available HBM \(<limit>\)", "tpu", "compile", "hbm"
    ),
    _wording(r"unlikely to have enough memory\. Requires <needed>, has <limit> available", "tpu", "compile", "hbm"),
    _wording(
        r"Ran out of memory in memory space (?P<space>\w+) while allocating on stack for %?[\w.\-]+",
        "tpu",
        "compile",
    ),
    _wording(r"Allocation \(size=<requested>\) would exceed memory \(size=<limit>\)", "tpu", "compile", "vmem"),
    _wording(r"[Rr]equire[sd]? <needed>[^.]{0,80}?(?:limit|available)\D{0,20}<limit>", "", "compile"),
    _wording(
        r"Error loading program '(?P<program>[^']+)': Attempting to reserve <requested> at the bottom of memory\. "
        r"That was not possible\. There are <free> free, \S+ reserved, and <largest_free> reservable",
        "tpu",
        "load",
        "hbm",
    ),
    _wording(
        r"Attempting to reserve <requested> at the bottom of memory\. That was not possible\. There are <free> free, "
        r"\S+ reserved, and <largest_free> reservable",
        "tpu",
        "load",
        "hbm",
    ),
    _wording(
        r"(?:Error loading program '(?P<program>[^']+)': )?Attempting to reserve <requested> at the bottom of memory",
        "tpu",
        "load",
        "hbm",
    ),
    _wording(
        r"Attempting to allocate <requested>\. That was not possible\. There are <free> free\."
        r"(?:; \((?P<device>\w+)\))?",
        "tpu",
        "run",
        "hbm",
    ),
    _wording(r"Out of memory while trying to allocate <requested>", "gpu", "run"),
    _wording(r"cuMemAllocAsync failed to allocate <requested>", "gpu", "run", "", "cuda_async"),
    _wording(
        r"Allocator \((?P<device>\w+_bfc)\) ran out of memory trying to allocate <requested>", "gpu", "run", "", "bfc"
    ),
    _wording(r"Failed to allocate request for [\d.]+\w+ \(<requested>\) on device ordinal (?P<device>\d+)", "", "run"),
    _wording(r"failed to allocate [\d.]+\w* \(<requested>\) from device", "gpu", "run"),
    _wording(r"Out of memory allocating <requested>", "cpu", "run"),
)
_EXHAUSTED = re.compile(r"RESOURCE_EXHAUSTED|[Rr]esource exhausted")
_CUDA = re.compile(r"Free memory/Total memory: (\d+)/(\d+)")
_MODULE = re.compile(r"(?:HLO module|hlo_module|module_name|[Mm]odule)[:=]? ?'?\"?((?:jit|pjit|pmap|shmap)_[\w.<>-]+)")
_JIT = re.compile(r"\b(?:jit|pjit)\((\w+)\)/")


def is_exhausted(error: str) -> bool:
    """Whether an error says that memory ran out."""
    return _EXHAUSTED.search(error) is not None


def parse(text: str) -> OutOfMemory | None:
    """The out-of-memory error in a text: the last one that ended a run, else the last that was only logged.

    None if there is none that is understood.
    """
    found = _message(text)
    if found is None:
        return None
    wording, match = found
    # Compilers print their tables below the message, allocators their statistics above it.
    before, after = text[: match.start()], text[match.start() :]
    told = match.groupdict()
    sizes = {name: to_bytes(size) for name, size in told.items() if name.endswith("_bytes") and size}
    allocator, counted = statistics(text)
    cuda = list(_CUDA.finditer(before)) or list(_CUDA.finditer(after))
    if cuda:
        sizes |= {"card_free_bytes": int(cuda[-1][1]), "card_bytes": int(cuda[-1][2])}
    tables = parts(after)
    live = blocks(after) or blocks(before)
    platform = wording.platform or ("gpu" if allocator or cuda else "tpu" if wording.space == "hbm" else "")
    figures = {**counted, **sizes} if platform in ("gpu", "") else sizes
    if "currently allocated" in tables:
        figures.setdefault("resident_bytes", tables["currently allocated"])
    return OutOfMemory(
        message=" ".join(match[0].split()),
        platform=platform,
        phase=wording.phase,
        space=told.get("space") or wording.space,
        allocator=wording.allocator or (allocator if platform == "gpu" else ""),
        program=told.get("program") or _program(after, live) or _program(before, ()),
        device=told.get("device") or "",
        parts=tables,
        blocks=live,
        **figures,
    )


def _message(text: str) -> tuple[_Wording, re.Match[str]] | None:
    """The words that tell the failure: those of an error before those of a log, then the last, then the best."""
    found = [
        (_is_error(text, match), match.start(), -rank, wording, match)
        for rank, wording in enumerate(_WORDINGS)
        for match in wording.pattern.finditer(text)
    ]
    if not found:
        return None
    *_, wording, match = max(found, key=lambda item: item[:3])
    # What stands earlier in the same line may be the same words with more around them.
    line = text.rfind("\n", 0, match.start())
    same = [item for item in found if line < item[1] <= match.start()]
    *_, wording, match = max(same, key=lambda item: item[2])
    return wording, match


def _is_error(text: str, match: re.Match[str]) -> bool:
    """Whether an exhausted status stands on the same line, in front."""
    line = text.rfind("\n", 0, match.start()) + 1
    return is_exhausted(text[line : match.start()])


def _program(text: str, live: tuple[Block, ...]) -> str:
    if named := _MODULE.search(text):
        return named[1].rstrip(".")
    for place in (*(block.op_name for block in live), text):
        if traced := _JIT.search(place):
            return f"jit_{traced[1]}"
    return ""
