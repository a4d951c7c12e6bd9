"""Packing problems in files: one CSV line per buffer, the format that MiniMalloc and idealloc read."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xla_stalloc.packing.problem import Heap, Problem

_COLUMNS = ("id", "lower", "upper", "size")
_OPTIONAL = "alignment"
_LIMIT = 1 << 62  # of every number, and of all sizes together


class InstanceError(ValueError):
    """A file that holds no packing problem; names the file, the line and what is wrong with it."""


@dataclass(frozen=True)
class Instance:
    """A packing problem: int64[n] each.

    Attributes:
        ids: as in the file.
        lower: the time from which on a buffer is live.
        upper: the time from which on it is not.
        size: bytes.
        alignment: bytes that its offset is a multiple of.
    """

    ids: tuple[str, ...]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    size: NDArray[np.int64]
    alignment: NDArray[np.int64]

    def problem(self, capacity: int | None = None) -> Problem:
        """What is to be packed, into one heap of so many bytes."""
        return Problem(self.lower, self.upper, self.size, self.alignment, heaps=(Heap(capacity=capacity),))


def read(path: str | os.PathLike[str]) -> Instance:
    """Reads a CSV file with the columns id, lower, upper, size and perhaps alignment, in any order; also gzipped.

    Raises:
        InstanceError: it cannot be read, or a line of it makes no sense.
    """
    name = os.fspath(path)
    try:
        data = Path(path).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except OSError as error:
        raise InstanceError(f"{name}: cannot be read: {error.strerror or error}") from error
    except (EOFError, UnicodeDecodeError) as error:
        raise InstanceError(f"{name}: is no text: {error}") from error
    return _parse_numbers(name, text) or _parse(name, csv.reader(io.StringIO(text)))


def _parse_numbers(name: str, text: str) -> Instance | None:
    """The quick way, for a million lines: ids are numbers too, and nothing is unusual. None if anything is."""
    line, _, body = text.partition("\n")
    header = line.split(",")
    if sorted(set(header) | {_OPTIONAL}) != sorted((*_COLUMNS, _OPTIONAL)) or len(set(header)) < len(header):
        return None
    if not body or '"' in body or "#" in body:
        return None
    try:
        table = np.loadtxt(io.StringIO(body), np.int64, delimiter=",", ndmin=2, comments=None).T
    except (ValueError, OverflowError):
        return None
    if len(table) != len(header) or (table < 0).any() or (table >= _LIMIT).any():
        return None
    digits = sum(int((table >= 10**power).sum()) for power in range(1, 19)) + table.size
    if digits + table.size != len(body) + (not body.endswith("\n")):
        return None  # some number is not written as we would write it: an id has to come back as it was
    columns = dict(zip(header, table, strict=True))
    lower, upper, size = (np.ascontiguousarray(columns[column]) for column in _COLUMNS[1:])
    alignment = np.ascontiguousarray(columns.get(_OPTIONAL, np.ones_like(size)))
    total = int((size >> 31).sum()) + len(size)  # in units of 2^31, rounded up
    if (lower >= upper).any() or (alignment < 1).any() or total >= _LIMIT >> 31:
        return None
    if len(np.unique(columns["id"])) < len(size):
        return None
    return Instance(tuple(map(str, columns["id"].tolist())), lower, upper, size, alignment)


def _parse(name: str, lines: Iterable[list[str]]) -> Instance:
    rows = [(number, [cell.strip() for cell in line]) for number, line in enumerate(lines, 1) if any(line)]
    if not rows:
        raise InstanceError(f"{name}: is empty; expected a header with {', '.join(_COLUMNS)} and a line per buffer")
    number, header = rows[0]
    if missing := [column for column in _COLUMNS if column not in header]:
        raise InstanceError(
            f"{name}:{number}: the header has no column {', '.join(missing)}; expected {', '.join(_COLUMNS)} and "
            f"perhaps {_OPTIONAL}"
        )
    place = {column: header.index(column) for column in (*_COLUMNS, _OPTIONAL) if column in header}
    seen: dict[str, int] = {}
    values: list[tuple[int, int, int, int]] = []
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise InstanceError(f"{name}:{number}: has {len(row)} columns, the header {len(header)}")
        id = row[place["id"]]
        if (before := seen.setdefault(id, number)) != number:
            raise InstanceError(f"{name}:{number}: id {id!r} was on line {before} already")
        lower, upper, size = (_number(name, number, column, row[place[column]]) for column in _COLUMNS[1:])
        alignment = _number(name, number, _OPTIONAL, row[place[_OPTIONAL]]) if _OPTIONAL in place else 1
        if lower >= upper:
            raise InstanceError(f"{name}:{number}: lives from {lower} to {upper}: lower has to be below upper")
        if alignment < 1:
            raise InstanceError(f"{name}:{number}: has an alignment of {alignment}: it has to be positive")
        values.append((lower, upper, size, alignment))
    if sum(size for _, _, size, _ in values) >= _LIMIT:
        raise InstanceError(f"{name}: the buffers have more than 2^62 bytes together")
    columns = np.array(values, np.int64).reshape(-1, 4).T
    return Instance(tuple(seen), *columns)


def _number(name: str, line: int, column: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise InstanceError(f"{name}:{line}: {column} is {text!r}, which is no whole number") from None
    if not 0 <= value < _LIMIT:
        raise InstanceError(f"{name}:{line}: {column} is {value}: expected a number from 0 up to 2^62")
    return value


def write(path: str | os.PathLike[str], instance: Instance, offsets: NDArray[np.int64]) -> None:
    """Writes a problem with the offset of each buffer, in bytes; a reader sees the old file or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    columns = {"lower": instance.lower, "upper": instance.upper, "size": instance.size}
    if (instance.alignment != 1).any():
        columns[_OPTIONAL] = instance.alignment
    columns["offset"] = offsets
    with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["id", *columns])
            table.writerows(zip(instance.ids, *(column.tolist() for column in columns.values()), strict=True))
            file.close()
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise
