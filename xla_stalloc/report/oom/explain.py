"""An out-of-memory error explained: which program, what was asked, what was there, and what to change."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xla_stalloc.plan.explain import size
from xla_stalloc.report.model import ModuleReport
from xla_stalloc.report.oom.parse import OutOfMemory, parse
from xla_stalloc.report.sources import shortened

SCHEMA = 1
"""Version of the JSON form; new keys do not raise it."""
_PADDED = 1.5  # times its content: a block so large is worth another layout
_PHASES = {
    "compile": "while it was compiled",
    "load": "while it was loaded onto the device",
    "run": "while memory was handed out",
}
_LISTED = 5


class NotUnderstood(ValueError):
    """A text has no out-of-memory error in wording that is known."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened, and what to change.

    Attributes:
        error: what the text says.
        module: the program in the dump, if there is a dump and it has it.
        changes: what to change, most promising first.
    """

    error: OutOfMemory
    module: ModuleReport | None
    changes: tuple[str, ...]

    def to_json(self) -> str:
        """One line of JSON; keys as the attributes of these classes."""
        content: dict[str, Any] = {"schema": SCHEMA, **dataclasses.asdict(self)}
        return json.dumps(content, separators=(",", ":"))

    def to_text(self) -> str:
        """The explanation as plain text."""
        return "\n".join(_text(self)) + "\n"


def explain(text: str, modules: Sequence[ModuleReport] = ()) -> Explanation:
    """Explains the error in a text, with the reports of the programs that were compiled, if they are at hand.

    Raises:
        NotUnderstood: no out-of-memory error was found.
    """
    error = parse(text)
    if error is None:
        raise NotUnderstood(
            "no out-of-memory error of XLA's was found in this text. Give the text of the error, or the log around it, "
            "with the line that says RESOURCE_EXHAUSTED or 'ran out of memory'"
        )
    module = _module(error, modules)
    return Explanation(error, module, tuple(_changes(error, module)))


def _module(error: OutOfMemory, modules: Sequence[ModuleReport]) -> ModuleReport | None:
    """The program of that name, else the only one whose temps or output are what was asked for, else none."""
    named = [module for module in modules if module.name == error.program]
    if not named and error.requested_bytes:
        named = [m for m in modules if error.requested_bytes in (m.temp_bytes, m.output_bytes)]
        named = named if len(named) == 1 else []
    if not named and len(modules) == 1 and not error.program:
        named = list(modules)
    return max(named, key=lambda module: module.peak_bytes or 0, default=None)


def _changes(error: OutOfMemory, module: ModuleReport | None) -> Iterator[str]:
    yield from _of_the_device(error)
    yield from _of_blocks(error)
    if module is None:
        yield "Compile with XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_proto' and give --dump DIR to see its peak"
        return
    yield from (f"{item.text} ({size(item.bytes)})" for item in module.advice)
    if module.temp_bytes and module.lower_bound_bytes is not None and module.temp_bytes > module.lower_bound_bytes:
        saved = module.temp_bytes - module.lower_bound_bytes
        yield (
            f"Planning the order and offsets may save up to {size(saved)} of {module.name}'s temps; "
            f"`xla-stalloc analyze DIR --module {module.name}` says how much it does"
        )


def _of_the_device(error: OutOfMemory) -> Iterator[str]:
    """What the figures of the device say."""
    asked, limit, free, largest = (
        error.requested_bytes,
        error.limit_bytes,
        error.free_bytes,
        error.largest_free_bytes,
    )
    if error.phase == "compile":
        yield from _of_compilation(error)
    elif asked is not None and limit is not None and asked > limit:
        yield (
            f"The request alone is larger than all there is, {size(limit)}: no freeing helps. Make the program "
            "smaller: less per device (batch, sharding), jax.checkpoint, accumulation"
        )
    elif asked is not None and free is not None and free >= asked:
        piece = f", the largest piece has {size(largest)}" if largest is not None else ""
        yield (
            f"Fragmentation: {size(free)} are free{piece}, but not in one piece of {size(asked)}. Allocate what stays "
            "(state) first and donate it, so that it is not copied around; a smaller or planned block fits more easily"
        )
    elif asked is not None and free is not None:
        yield (
            f"{size(asked - free)} are missing. Free what is resident before the call (stalloc.snapshot() lists it), "
            "donate arguments, or shard the state over more devices"
        )
    if error.phase == "load":
        yield "The program's own memory is reserved in one piece at the bottom: load it before large arrays are made"
    if error.platform == "gpu" and error.phase == "run":
        yield from _of_the_card(error)
    if error.platform == "cpu":
        yield "The host has no more to give: see the limit of the container (cgroup) and what other processes hold"


def _of_compilation(error: OutOfMemory) -> Iterator[str]:
    if error.space not in ("", "hbm"):
        yield (
            f"{error.space} is the small memory beside the cores, not HBM: a kernel's blocks are too large. Use "
            "smaller block sizes, or raise its limit (--xla_tpu_scoped_vmem_limit_kib)"
        )
        return
    arguments, limit = error.parts.get("arguments"), error.limit_bytes
    over = error.needed_bytes - limit if error.needed_bytes is not None and limit is not None else None
    missing = f"{size(over)} too much. " if over is not None and over > 0 else ""
    if arguments and error.needed_bytes and arguments > error.needed_bytes / 2:
        yield (
            f"{missing}Arguments are most of it, {size(arguments)}: shard parameters and optimizer state over more "
            "devices, donate them, or keep them in a smaller type"
        )
    elif "program" not in error.parts and "HLO temporaries" not in error.message:
        yield f"{missing}The text does not tell arguments from temporaries; the table below the message does"
    else:
        yield (
            f"{missing}Temporaries are most of it: jax.checkpoint on the layers, a smaller batch per device with "
            "accumulation, or a sharding of the largest activations"
        )


def _of_the_card(error: OutOfMemory) -> Iterator[str]:
    card, free, resident, limit = error.card_bytes, error.card_free_bytes, error.resident_bytes, error.limit_bytes
    if card is not None and free is not None and resident is not None and card - free > 1.1 * resident:
        yield (
            f"{size(card - free - resident)} of the card are held outside of what this program has in use: other "
            "processes, NCCL and libraries, or the pool's own cache. `xla-stalloc pool` tells what is feasible"
        )
    elif card is not None and limit is not None and limit < 0.9 * card:
        yield f"The pool is limited to {size(limit)} of {size(card)}: raise XLA_PYTHON_CLIENT_MEM_FRACTION"
    elif card is None and limit is not None:
        yield f"The pool is limited to {size(limit)}: see whether XLA_PYTHON_CLIENT_MEM_FRACTION can be raised"


def _of_blocks(error: OutOfMemory) -> Iterator[str]:
    """What the largest blocks say."""
    for block in error.blocks[:_LISTED]:
        if block.unpadded_bytes and block.bytes > _PADDED * block.unpadded_bytes:
            yield (
                f"Padding: {block.label or block.shape} takes {size(block.bytes)} for {size(block.unpadded_bytes)} of "
                "data; its last two dimensions are padded to tiles. Reshape it, the last one a multiple of 128"
            )
    if error.blocks and (largest := error.blocks[0]).source:
        yield f"Begin with the largest block, {size(largest.bytes)}, made at {shortened(largest.source)}"


def _text(found: Explanation) -> Iterator[str]:
    error, module = found.error, found.module
    where = " ".join(filter(None, [error.platform.upper(), error.device]))
    program = error.program or (module.name if module else "") or "a program that the text does not name"
    yield f"{program} ran out of memory{f' on {where}' if where else ''} {_PHASES[error.phase]}"
    yield f"  {error.message}"
    rows = {
        "asked for": error.requested_bytes,
        "needed in all": error.needed_bytes,
        "limit": error.limit_bytes,
        "resident": error.resident_bytes,
        "free": error.free_bytes,
        "largest free piece": error.largest_free_bytes,
        "card": error.card_bytes,
        "free on the card": error.card_free_bytes,
        **error.parts,
    }
    told = [(name, size(count)) for name, count in rows.items() if count is not None]
    if error.allocator:
        told.insert(0, ("allocator", error.allocator))
    width = max((len(name) for name, _ in told), default=0)
    yield from (f"  {name.ljust(width)}  {count.rjust(9)}" for name, count in told)
    if error.blocks:
        yield "largest blocks:"
        for block in error.blocks[:_LISTED]:
            what = ", ".join(filter(None, [block.label, block.shape, shortened(block.source) or block.op_name]))
            yield f"  {size(block.bytes).rjust(9)}  {what}".rstrip()
    if module is not None:
        yield from _of_module(module)
    yield "what to change:"
    yield from (f"  - {change}" for change in found.changes)


def _of_module(module: ModuleReport) -> Iterator[str]:
    peak = "not known" if module.peak_bytes is None else size(module.peak_bytes)
    temps = "not known" if module.temp_bytes is None else size(module.temp_bytes)
    yield (
        f"{module.name} in the dump: peak {peak}, of it arguments {size(module.argument_bytes)}, "
        f"outputs {size(module.output_bytes)} ({size(module.alias_bytes)} aliased), temps {temps}"
    )
    for buffer in module.live_at_peak[:_LISTED]:
        what = ", ".join(filter(None, [buffer.kind, buffer.shape, shortened(buffer.source)]))
        yield f"  {size(buffer.bytes).rjust(9)}  {what}"
