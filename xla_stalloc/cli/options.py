"""Option types that commands share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from xla_stalloc.report.sizes import Growth


class MeshShape(NamedTuple):
    """Devices along `data` and along `model`."""

    data: int
    model: int

    def __str__(self) -> str:
        """As it is typed: `4x2`."""
        return f"{self.data}x{self.model}"


class MeshType(click.ParamType[MeshShape]):
    """`4x2`: data by model; `8` is `8x1`."""

    name = "DATAxMODEL"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> MeshShape:
        """Parses the text; anything but one or two positive numbers is a usage error."""
        if isinstance(value, MeshShape):
            return value
        match = re.fullmatch(r"([1-9]\d*)(?:x([1-9]\d*))?", str(value))
        if match is None:
            self.fail(f"'{value}' is not a mesh; write data x model, such as 4x2", param, ctx)
        return MeshShape(int(match[1]), int(match[2] or 1))


class BytesType(click.ParamType[int]):
    """`64MB`, `1.5GiB` or `4096`: bytes."""

    name = "SIZE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parses the text; what is no size is a usage error."""
        if isinstance(value, int):
            return value
        from xla_stalloc.report.sizes import parse

        try:
            return parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class GrowthType(click.ParamType["Growth"]):
    """`2%` or `64MB`: how much more there may be."""

    name = "PERCENT|SIZE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Growth:
        """Parses the text; what is neither is a usage error."""
        from xla_stalloc.report.sizes import Growth, parse_growth

        if isinstance(value, Growth):
            return value
        try:
            return parse_growth(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
