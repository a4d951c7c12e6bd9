"""The map as a picture, for a paper or an issue; drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from xla_stalloc.plan.explain import size
from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.colours import Scheme, scheme
from xla_stalloc.report.map.labels import Labels, labels

_INCHES = (11.0, 6.5)
_LEGEND = 12  # colours that the legend names
_DOTS_PER_INCH = 150


def picture(maps: Sequence[MemoryMap], colour_by: str = "kind") -> bytes:
    """The temp allocations of the maps side by side as PNG, with their live bytes beneath.

    Args:
        maps: stock, and the plan if there is one.
        colour_by: one of `colours.SCHEMES`.
    """
    told = [labels(drawn) for drawn in maps]
    colours = scheme(colour_by, maps[0], told[0])
    highest = max([drawn.temp_bytes for drawn in maps] + [1])
    with matplotlib.rc_context({"font.size": 8}):
        figure = Figure(figsize=(_INCHES[0] * (1 if len(maps) == 1 else 1.5), _INCHES[1]), layout="constrained")
        axes = figure.subplots(2, len(maps), sharey="row", squeeze=False, gridspec_kw={"height_ratios": (4, 1)})
        for place, (drawn, one) in enumerate(zip(maps, told, strict=True)):
            _boxes(axes[0, place], drawn, one, colours, highest)
            _curve(axes[1, place], drawn, highest)
        in_words = FuncFormatter(lambda count, _: size(int(count)))
        for left in axes[:, 0]:
            left.yaxis.set_major_formatter(in_words)
        used = sorted(zip(colours.live_at_peak(maps[0], told[0]), colours.names, colours.colours, strict=True))[::-1]
        patches = [Patch(color=colour, label=f"{name} {size(live)}") for live, name, colour in used[:_LEGEND] if live]
        if patches:
            title = f"by {colour_by}, live at the peak"
            figure.legend(handles=patches, loc="outside lower center", ncols=4, frameon=False, title=title)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()


def _boxes(axes: Axes, drawn: MemoryMap, told: Labels, colours: Scheme, highest: int) -> None:
    shown = drawn.band == 0
    left, right = drawn.start[shown], drawn.end[shown]
    bottom = drawn.address[shown]
    top = bottom + drawn.size[shown]
    corners = np.stack([left, bottom, left, top, right, top, right, bottom], axis=1).reshape(-1, 4, 2)
    palette = np.array(colours.colours)
    boxes = PolyCollection(
        list(corners.astype(float)),
        facecolors=palette[colours.codes(told)[shown]].tolist(),
        edgecolors="white",
        linewidths=0.1,
        rasterized=True,
    )
    axes.add_collection(boxes)
    axes.set(xlim=(0, len(drawn.live)), ylim=(0, highest))
    axes.set_title(
        f"{drawn.module}, {drawn.title}: temps {size(drawn.temp_bytes)}, of which {size(drawn.peak_bytes)} live at peak"
    )
    axes.axvline(drawn.peak_time + 0.5, color="#d62728", linewidth=0.8)


def _curve(axes: Axes, drawn: MemoryMap, highest: int) -> None:
    times = np.arange(len(drawn.live) + 1)
    axes.stairs(drawn.live, times, fill=True, alpha=0.4)
    axes.axhline(drawn.temp_bytes, color="#333333", linewidth=0.8, linestyle="dashed")
    axes.axvline(drawn.peak_time + 0.5, color="#d62728", linewidth=0.8)
    axes.set(xlim=(0, len(drawn.live)), ylim=(0, 1.05 * highest), xlabel="position in the schedule")
