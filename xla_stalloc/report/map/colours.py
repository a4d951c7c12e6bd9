"""Colour schemes: a number for each box, a colour and a name for each number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from bokeh.palettes import turbo
from numpy.typing import NDArray

from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.labels import Labels, Texts
from xla_stalloc.report.scopes import number_of

# The colours of Okabe and Ito (2008), which people with any colour vision can tell apart, then lighter ones of them.
# fmt: off
_PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f",
    "#5fa8d3", "#f2c063", "#66c2a5", "#e0afca", "#9ad2f2", "#ea9f66", "#8c6bb1", "#b2b2b2",
    "#004c77", "#a06e00", "#006b4e", "#8d4f72",
)
# fmt: on
_REST = "#d9d9d9"
_SHADES = 200  # of layers; more have to share


_TELLS: Mapping[str, Callable[[Labels], Texts]] = {
    "kind": lambda told: told.kind,
    "layer": lambda told: told.layer,
    "source": lambda told: told.source,
}
SCHEMES = tuple(_TELLS)


@dataclass(frozen=True, slots=True)
class Scheme:
    """How boxes are coloured: by what, and the colours with their names.

    Attributes:
        by: what the colour tells, one of `SCHEMES`.
        names: of the colours; the last one may be that of all the rest.
        colours: as ``#rrggbb``.
        numbers: of a text, the number of its colour; what is not here has the last colour.
    """

    by: str
    names: tuple[str, ...]
    colours: tuple[str, ...]
    numbers: Mapping[str, int]

    def codes(self, told: Labels) -> NDArray[np.uint8]:
        """Of each box, the number of its colour; uint8[n]."""
        texts = _TELLS[self.by](told)
        last = len(self.names) - 1
        return np.array([self.numbers.get(text, last) for text in texts.table], np.uint8)[texts.codes]

    def live_at_peak(self, drawn: MemoryMap, told: Labels) -> list[int]:
        """Of each colour, bytes that are live in the temp allocation at the peak."""
        at_peak = (drawn.start <= drawn.peak_time) & (drawn.peak_time < drawn.end) & (drawn.band == 0)
        counted = np.bincount(self.codes(told)[at_peak], weights=drawn.bytes[at_peak], minlength=len(self.names))
        return [int(count) for count in counted]


def scheme(by: str, drawn: MemoryMap, told: Labels) -> Scheme:
    """Colours for what takes the most memory for the longest, and grey for the rest; for layers, along a scale."""
    texts = _TELLS[by](told)
    if by == "layer":
        return _layers(texts)
    area = (drawn.end - drawn.start).astype(float) * drawn.size
    totals = np.bincount(texts.codes, weights=area, minlength=len(texts.table))
    ranked = np.argsort(-totals, kind="stable")[: len(_PALETTE)].tolist()
    names = [texts.table[number] or "(unknown)" for number in ranked]
    colours = list(_PALETTE[: len(ranked)])
    if rest := len(texts.table) - len(ranked):
        names.append(f"{rest:,} others")
        colours.append(_REST)
    numbers = {texts.table[number]: place for place, number in enumerate(ranked)}
    return Scheme(by, tuple(names), tuple(colours), numbers)


def _layers(texts: Texts) -> Scheme:
    """Layers in their order, so that neighbours have colours that are neighbours."""
    layers = sorted(filter(None, texts.table), key=number_of)
    shades = min(len(layers), _SHADES)
    numbers = {layer: place * shades // len(layers) for place, layer in enumerate(layers)}
    names = [""] * shades
    for layer, number in numbers.items():
        names[number] = names[number] or layer
    return Scheme("layer", (*names, "no layer"), (*turbo(shades), _REST), numbers)
