"""Arguments: copied although donated, donated in vain, or kept beside outputs that could take over their memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xla_stalloc.hlo import Instruction, Module, Shape, ShapeIndex
from xla_stalloc.lifetimes.program import uses
from xla_stalloc.report.donation import Place, array_places
from xla_stalloc.report.model import Advice
from xla_stalloc.report.remedies.subject import Subject
from xla_stalloc.report.sources import shortened, source_of
from xla_stalloc.scheduling.elide import avoidable_copies

_WORTH_SAYING = 0.1  # of the arguments and outputs: less than this that lives together is not worth a line
_NAMED = 3  # readers of a copied argument that are named


def advice(subject: Subject) -> Iterator[Advice]:
    """All about arguments."""
    yield from copies(subject)
    yield from unusable_donations(subject.module, subject.donated)
    yield from live_together(subject)


def without_lifetimes(module: Module, donated: Collection[Place]) -> Iterator[Advice]:
    """What can be told of a module whose memory is not modelled."""
    yield from unusable_donations(module, donated)


def copies(subject: Subject) -> Iterator[Advice]:
    """Copies of donated arguments that another order makes unnecessary."""
    lifetimes, record = subject.lifetimes, subject.planned
    new_peak = None
    if record is not None and subject.peak_bytes is not None:
        new_peak = subject.peak_bytes - record.saved_bytes
    for copy in avoidable_copies(lifetimes):
        readers = sorted({source_of(reader) for reader in copy.readers})
        forced = f", because it is still read at {_some(readers)}" if readers else ""
        yield Advice(
            kind="avoidable-copy",
            text=f"avoidable copy of a donated argument: {_argument(copy.argument)} is copied before it is overwritten"
            f"{forced}. Planning removes the copy by reading first, then writing",
            bytes=copy.copy.shape.byte_size,
            source=readers[0] if readers else source_of(copy.copy),
            new_peak_bytes=new_peak,
            moves_peak=subject.moves(new_peak),
            how="" if new_peak is None else "planned",
        )


def unusable_donations(module: Module, donated: Collection[Place]) -> Iterator[Advice]:
    """Donated arguments whose memory no output takes over."""
    aliased = {(parameter, index) for _, parameter, index, _ in module.input_output_alias}
    sizes = {part.byte_size for part in _free_outputs(module).values()}
    for number, index in sorted(set(donated) - aliased):
        parameter = module.entry.parameters[number]
        shape = parameter.shape.at(index)
        if shape.byte_size in sizes:
            why = "no output takes over its memory: that of its size has another type, shape, layout or sharding"
        else:
            why = "no output of that size is there to take over its memory"
        yield Advice(
            kind="unusable-donation",
            text=f"{_argument(parameter)}, {shape}, is donated, but {why}. It stays next to the outputs",
            bytes=shape.byte_size,
            source=source_of(parameter),
            moves_peak=False,
        )


def live_together(subject: Subject) -> Iterator[Advice]:
    """Arguments that are kept beside outputs, and what donating those would save that an output matches."""
    module, donated = subject.module, subject.donated
    parameters = module.entry.parameters
    kept = {
        place: parameters[place[0]].shape.at(place[1])
        for place in array_places([parameter.shape for parameter in parameters])
        if place not in donated
    }
    free = _free_outputs(module)
    arguments, outputs = (sum(part.byte_size for part in parts.values()) for parts in (kept, free))
    if min(arguments, outputs) <= _WORTH_SAYING * max(arguments, outputs):
        return
    unmatched = [(part.element_type, part.dimensions) for part in free.values()]
    matched = list[Place]()
    for place, part in kept.items():
        if (part.element_type, part.dimensions) in unmatched:
            unmatched.remove((part.element_type, part.dimensions))
            matched.append(place)
    saved = sum(kept[place].byte_size for place in matched)
    safe = sum(kept[place].byte_size for place in _donatable(subject, matched))
    new_peak = None if subject.peak_bytes is None else subject.peak_bytes - safe
    if saved:
        how = f"Donating those that are not needed afterwards (donate_argnums) could save up to {saved:,} bytes"
        if new_peak is not None:
            how += f": peak {new_peak:,}"
        if safe < saved:
            how += f", since {saved - safe:,} of them are still read when the output is written, and would be copied"
    else:
        how = "No argument has the shape of an output, so donation cannot help; smaller programs, one per output, can"
    yield Advice(
        kind="live-together",
        text=f"arguments of {arguments:,} bytes and outputs of {outputs:,} bytes live together, "
        f"{arguments + outputs:,} in all. {how}",
        bytes=min(arguments, outputs),
        source=source_of(module.entry.root),
        new_peak_bytes=new_peak,
        moves_peak=safe > 0 if new_peak is not None else None,
        how="exact" if new_peak is not None else "",
    )


def _donatable(subject: Subject, places: Collection[Place]) -> Iterator[Place]:
    """The arguments whose last reader has run when an output of their type is first written: no copy is needed."""
    lifetimes, module = subject.lifetimes, subject.module
    time = {instruction.id: number for number, instruction in enumerate(lifetimes.schedule)}
    written: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for index, part in _free_outputs(module).items():
        for value in lifetimes.dataflow.at(module.entry.root, index):
            when = time.get(value.instruction.id, 0) if value.instruction.opcode != "parameter" else -1
            written.setdefault((part.element_type, part.dimensions), []).append(when)
    for moments in written.values():
        moments.sort()
    values = {(v.instruction.parameter_number, v.index): v for v in subject.arguments}
    for place in places:
        argument = values.get(place)
        if argument is None:
            continue
        last = max((time[user.id] for user, _, _ in uses(argument) if user.id in time), default=-1)
        moments = written.get((argument.shape.element_type, argument.shape.dimensions), [])
        later = [moment for moment in moments if moment >= last]
        if later:
            moments.remove(later[0])
            yield place


def _free_outputs(module: Module) -> dict[ShapeIndex, Shape]:
    """The outputs in memory of their own, by index."""
    aliased = {output for output, *_ in module.input_output_alias}
    parts = module.entry.root.shape.subshapes()
    return {index: part for index, part in parts if not part.is_tuple and index not in aliased}


def _argument(parameter: Instruction) -> str:
    return f"argument {parameter.op_name or parameter.name!r}"


def _some(names: list[str]) -> str:
    shown = [shortened(name) for name in names[:_NAMED]]
    more = f" and {len(names) - _NAMED} other places" if len(names) > _NAMED else ""
    return ", ".join(shown) + more
