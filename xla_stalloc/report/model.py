"""What a report says, as plain data."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from xla_stalloc.plan.record import PlanRecord

SCHEMA = 1
"""Version of the JSON form; new keys do not raise it."""


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """A buffer that is live at the peak.

    Attributes:
        name: of the instruction that wrote it, with the place in its output where that is a tuple.
        bytes: without padding.
        shape: as in HLO text.
        source: ``file:line`` in the user's program; for arguments, the name of the argument. What the compiler has made
            up itself has the source of what it was made from. ``""`` if nothing tells.
        kind: ``temp``, ``argument``, ``donated`` (an argument whose memory an output takes over), ``output`` or
            ``constant``.
        op_name: path of the operation in the user's program.
        inside: name of the output or donated argument in whose memory a temp lies; ``""`` if in the temp allocation.
        role: what it holds, one of `xla_stalloc.report.kinds.Content`; ``""`` if live ranges are not known.
        phase: in which it was written: ``forward``, ``backward`` or ``optimizer update``; ``""`` as for `role`.
        layer: of the model, e.g. ``layers_3``; ``""`` if nothing tells.
    """

    name: str
    bytes: int
    shape: str
    source: str
    kind: str
    op_name: str = ""
    inside: str = ""
    role: str = ""
    phase: str = ""
    layer: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Buffers that are live at the peak and have something in common.

    Attributes:
        name: what they have in common.
        bytes: of all of them.
        buffers: how many they are.
    """

    name: str
    bytes: int
    buffers: int


@dataclass(frozen=True, slots=True)
class Advice:
    """What could need less memory, and how.

    Attributes:
        kind: one of those that docs/analyze.md lists, ``avoidable-copy`` for instance.
        text: for people.
        bytes: that are at stake.
        source: ``file:line``, or the name of an argument.
        new_peak_bytes: `ModuleReport.peak_bytes` if the advice is followed; None if that was not computed.
        moves_peak: whether it lowers the peak; None if that is not known.
        how: how `new_peak_bytes` was found: ``planned`` (the program was planned anew), ``emulated`` (XLA's buffer
            assignment was emulated for the changed program), ``live bytes`` (the curve of live bytes without what is
            gone; packing may add to it), ``exact`` (it follows from the sizes), or ``""``.
    """

    kind: str
    text: str
    bytes: int
    source: str = ""
    new_peak_bytes: int | None = None
    moves_peak: bool | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a source that could not be read.

    Attributes:
        source: a file, or what else it is.
        problem: what is wrong and what to do, on one line.
    """

    source: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleReport:
    """Memory of one compiled program on one device, in the device's main memory. None: not known, see `reason`.

    Attributes:
        name: of the module, e.g. ``jit_step``.
        platform: ``cpu``, ``cuda``, ``tpu``, ``""`` if nothing tells.
        num_partitions: devices that share one copy of the program's data.
        instructions: in all computations.
        figures: ``xla`` if arguments, outputs, aliases and temps are XLA's own figures, ``emulated`` if they were found
            by doing what XLA's buffer assignment does.
        argument_bytes: all arguments, donated ones included.
        output_bytes: all outputs and the table of pointers to them, those in donated memory included.
        alias_bytes: outputs that lie in the memory of donated arguments.
        temp_bytes: height of the packed temp allocation.
        temp_peak_live_bytes: most bytes live at once inside the temp allocation, without padding.
        peak_bytes: arguments + outputs - aliases + temps.
        peak_at: name of the instruction that runs when the most temp bytes are live.
        peak_source: ``file:line`` of that instruction; ``""`` if nothing tells.
        peak_phase: of that instruction: ``forward``, ``backward``, ``optimizer update``, or ``""`` if not known.
        order_bound_bytes: temp bytes below which no packing can get in this order of the instructions.
        lower_bound_bytes: temp bytes below which no order of the instructions can get, with or without the copies of
            donated arguments that planning removes.
        constant_bytes: constants; they come on top of `peak_bytes`.
        generated_code_bytes: of the executable; known only from a `jax.stages.Compiled`.
        padding_bytes: behind what is live at the peak: alignment, and tiles of layouts.
        hole_bytes: of the temp allocation that hold nothing at the peak.
        largest_hole_bytes: the largest range of them in one piece.
        largest_block_bytes: the largest allocation, which has to be there in one piece.
        other_memory_bytes: temps in other memory spaces, by XLA's number of the space.
        live_at_peak: largest first. Outputs that are not written yet at that moment have their memory reserved, but are
            not live.
        groups: what is live at the peak by ``role``, ``layer``, ``op`` and ``source``; largest groups first.
        advice: what lowers the peak most first.
        planned: what planning brings; None if it was not asked for or not possible.
        reason: why something is not known or not exact, or ``""``.
    """

    name: str
    platform: str
    num_partitions: int
    instructions: int
    figures: str
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temp_bytes: int | None = None
    temp_peak_live_bytes: int | None = None
    peak_bytes: int | None = None
    peak_at: str | None = None
    peak_source: str = ""
    peak_phase: str = ""
    order_bound_bytes: int | None = None
    lower_bound_bytes: int | None = None
    constant_bytes: int = 0
    generated_code_bytes: int | None = None
    padding_bytes: int | None = None
    hole_bytes: int | None = None
    largest_hole_bytes: int | None = None
    largest_block_bytes: int | None = None
    other_memory_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    live_at_peak: tuple[LiveBuffer, ...] = ()
    groups: dict[str, tuple[Group, ...]] = dataclasses.field(default_factory=dict)
    advice: tuple[Advice, ...] = ()
    planned: PlanRecord | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Reports of all modules of some sources.

    Attributes:
        modules: largest peak first, those of unknown peak last.
        unreadable: what could not be read.
    """

    modules: tuple[ModuleReport, ...]
    unreadable: tuple[Unreadable, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return {
            "schema": SCHEMA,
            "modules": [dataclasses.asdict(module) for module in self.modules],
            "unreadable": [dataclasses.asdict(part) for part in self.unreadable],
        }

    def to_json(self) -> str:
        """One line of JSON; keys as the attributes of these classes."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def to_text(self, top: int = 20) -> str:
        """The report as plain text, with the `top` largest buffers that are live at the peak."""
        from xla_stalloc.report.text import render

        return render(self, top)
