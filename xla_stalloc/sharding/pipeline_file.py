"""A pipeline or a model in a JSON file: the figures, by the names of the classes that hold them.

{"devices": [{"name": "gpu", "memory_bytes": 80000000000, "repeat": 4}], "link": {"bytes_per_second": 5e10},
 "micro_batches": 8, "layers": [{"name": "block", "forward_seconds": 0.01, ..., "repeat": 32}]}

`stages` in place of `layers` are taken as they are.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from xla_stalloc.sharding.choose import Choice, Model, choose
from xla_stalloc.sharding.layers import Layer
from xla_stalloc.sharding.pipeline import use
from xla_stalloc.sharding.schedules import SCHEDULES
from xla_stalloc.sharding.stage import Device, Link, Pipeline, PipelineError, Program, Stage

_T = TypeVar("_T")
_KEYS = {"devices", "link", "micro_batches", "overhead_seconds", "layers", "stages"}


@dataclass(frozen=True)
class PipelineFile:
    """What a file says: a pipeline with stages as they are, or a model whose layers are still to be split."""

    subject: Pipeline | Model
    micro_batches: int

    def compare(
        self, schedules: Sequence[str] = (), micro_batches: Sequence[int] = (), chunks: Sequence[int] = (2, 4)
    ) -> list[Choice]:
        """What each schedule comes to, those that fit first, the fastest first.

        Args:
          schedules: to try; by default all that can run.
          micro_batches: numbers to try, for layers; by default the file's own, and twice and half as many.
          chunks: for the interleaved schedule, stages per device to try.

        Raises:
          PipelineError: nothing of this can run.
        """
        if isinstance(self.subject, Model):
            own = self.micro_batches
            counts = micro_batches or sorted({max(own // 2, 1), own, 2 * own})
            return choose(self.subject, schedules or tuple(SCHEDULES), counts, chunks)
        if micro_batches and tuple(micro_batches) != (self.micro_batches,):
            raise PipelineError(
                f"the figures of stages are of one of {self.micro_batches} micro-batches; "
                "give layers to try other numbers"
            )
        found, refused = [], []
        for name in schedules or SCHEDULES:
            try:
                bounds = tuple(range(len(self.subject.stages) + 1))
                found.append(Choice(bounds, use(self.subject, name, self.micro_batches)))
            except PipelineError as error:
                refused.append(str(error))
        if not found:
            raise PipelineError(f"no schedule can run: {'; '.join(refused)}")
        return sorted(found, key=lambda choice: (choice.use.missing_bytes, choice.use.seconds))


def load(path: Path | str) -> PipelineFile:
    """Reads a file.

    Raises:
      PipelineError: it cannot be read, or does not say what it has to; tells where.
    """
    try:
        content = json.loads(Path(path).read_text())
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise PipelineError(f"{path}: is no JSON: {error}") from error
    try:
        return parse(content)
    except PipelineError as error:
        raise PipelineError(f"{path}: {error}") from error


def parse(content: Any) -> PipelineFile:
    """The same from what JSON says.

    Raises:
      PipelineError: a key is missing, unknown, or has a value of the wrong type; tells where.
    """
    if not isinstance(content, dict):
        raise PipelineError("write an object with devices, micro_batches, and layers or stages")
    _known(content, _KEYS, "the file")
    micro_batches = _value(content.get("micro_batches"), int, "micro_batches")
    devices = _many(Device, content, "devices")
    link = _one(Link, content.get("link", {}), "link")
    if ("layers" in content) == ("stages" in content):
        raise PipelineError("write either layers, which are split into stages, or stages")
    if "stages" in content:
        return PipelineFile(Pipeline(_many(Stage, content, "stages"), devices, link), micro_batches)
    overhead = _value(content.get("overhead_seconds", 0.0), float, "overhead_seconds")
    if micro_batches < 1 or overhead < 0:
        raise PipelineError("micro_batches must be at least 1, and overhead_seconds at least 0")
    return PipelineFile(Model(_many(Layer, content, "layers"), devices, micro_batches, link, overhead), micro_batches)


def _many(kind: type[_T], content: dict[str, Any], key: str) -> list[_T]:
    """A list of objects; `repeat` makes several of one, numbered."""
    items = content.get(key)
    if not isinstance(items, list) or not items:
        raise PipelineError(f"{key}: write a list of at least one object")
    found: list[_T] = []
    for number, item in enumerate(items):
        where = f"{key}[{number}]"
        if not isinstance(item, dict):
            raise PipelineError(f"{where}: write an object")
        repeat = _value(item.get("repeat", 1), int, f"{where}.repeat")
        fields = {name: value for name, value in item.items() if name != "repeat"}
        if not isinstance(fields.setdefault("name", str(number)), str):
            raise PipelineError(f"{where}.name: write a string")
        for copy in range(repeat):
            named = {**fields, "name": f"{fields['name']}.{copy}"} if repeat > 1 else fields
            found.append(_one(kind, named, where))
    if not found:
        raise PipelineError(f"{key}: nothing is left after repeat")
    return found


def _one(kind: type[_T], item: Any, where: str) -> _T:
    if not isinstance(item, dict):
        raise PipelineError(f"{where}: write an object")
    types = get_type_hints(kind)
    _known(item, set(types), where)
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name in item:
            values[field.name] = _value(item[field.name], types[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING:
            raise PipelineError(f"{where}: {field.name} is missing")
    try:
        return kind(**values)
    except PipelineError as error:
        raise PipelineError(f"{where}: {error}") from error


def _value(value: Any, kind: Any, where: str) -> Any:
    if kind in (Program, Program | None):
        return None if value is None and kind is not Program else _one(Program, value, where)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is str and isinstance(value, str):
        return value
    if kind is float and number:
        if not value >= 0:
            raise PipelineError(f"{where}: {value} is negative")
        return float(value)
    if kind in (int, int | None) and number and value == int(value):
        if value < 0:
            raise PipelineError(f"{where}: {value} is negative")
        return int(value)
    if kind == int | None and value is None:
        return None
    wanted = {str: "a string", float: "a number"}.get(kind, "a whole number")
    raise PipelineError(f"{where}: {json.dumps(value)} is not {wanted}")


def _known(item: dict[str, Any], names: set[str], where: str) -> None:
    unknown = [key for key in item if key not in names]
    if unknown:
        raise PipelineError(f"{where}: unknown key {unknown[0]!r}; there are {', '.join(sorted(names))}")
