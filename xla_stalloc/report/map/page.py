"""The map as a page: one file that needs no network, drawn by bokeh on WebGL."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from bokeh.embed import file_html
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    CustomJSTickFormatter,
    Div,
    GlyphRenderer,
    HoverTool,
    Label,
    LinearColorMapper,
    Quad,
    RadioButtonGroup,
    Range1d,
    Span,
    TextInput,
    UIElement,
)
from bokeh.plotting import figure
from bokeh.resources import INLINE

from xla_stalloc.plan.explain import size
from xla_stalloc.report.map.arena import Part
from xla_stalloc.report.map.boxes import MemoryMap
from xla_stalloc.report.map.colours import SCHEMES, Scheme, scheme
from xla_stalloc.report.map.labels import Labels, labels

_MAP_HEIGHT, _CURVE_HEIGHT = 560, 170  # pixels
_LEGEND = 24  # colours that a legend names
_TEXTS = ("shape", "dtype", "opcode", "band", "kind", "layer", "source", "op_name", "stack")
_TOOLTIP = """
<div style="max-width: 46em; font-size: 12px">
  <b>@name</b> = @opcode{custom}<br>
  @shape{custom}, @dtype{custom}; @kind{custom} @layer{custom}, in @band{custom}<br>
  @bytes{custom} and @padding{custom} of padding, at address @bottom{custom}<br>
  live from @left{0,0} to @right{0,0}<br>
  @source{custom}<br>
  <span style="color: #666">@op_name{custom}</span>
  <div style="white-space: pre; color: #666">@stack{custom}</div>
</div>
"""


@dataclass(frozen=True, slots=True)
class View:
    """A map with the programs in it, one or several."""

    drawn: MemoryMap
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What callbacks need of a map on the page."""

    boxes: ColumnDataSource
    found: ColumnDataSource
    renderer: GlyphRenderer
    map: figure
    curve: figure

    def handles(self) -> dict[str, Any]:
        return {
            "boxes": self.boxes,
            "found": self.found,
            "renderer": self.renderer,
            "x_range": self.map.x_range,
            "y_range": self.map.y_range,
        }


def page(views: Sequence[View], colour_by: str = "kind") -> str:
    """The page as HTML.

    Args:
        views: maps to be seen side by side, `arena.aligned`: stock, and the plan if there is one.
        colour_by: one of `SCHEMES`, to begin with; the others are a click away.
    """
    told = [labels(view.drawn) for view in views]
    found = [scheme(by, views[0].drawn, told[0]) for by in SCHEMES]
    bands = max((view.drawn for view in views), key=lambda drawn: drawn.height).bands
    y_range = Range1d(0, max(view.drawn.temp_bytes for view in views) or bands[-1].base + bands[-1].size or 1)
    tables = {name: ColumnDataSource({"text": []}, name=f"texts {name}") for name in _TEXTS}
    shared = _Shared(tables)
    drawn = [_draw(view, one, found, colour_by, shared, y_range) for view, one in zip(views, told, strict=True)]
    shared.fill()
    handles = [one.handles() for one in drawn]
    legends = [_legend(one, views, told, visible=one.by == colour_by) for one in found]
    head = Div(text=_heading(views), sizing_mode="stretch_width")
    plots = row(*(column(d.map, d.curve, sizing_mode="stretch_width") for d in drawn), sizing_mode="stretch_width")
    controls = row(
        *_search(handles, tables),
        _colours(found, colour_by, drawn, legends),
        _extents(views, y_range),
        sizing_mode="stretch_width",
    )
    layout = column(head, controls, plots, *legends, sizing_mode="stretch_width")
    title = f"memory of {views[0].drawn.module}"
    made: str = file_html(layout, resources=INLINE, title=title)
    return made


class _Shared:
    """Texts of all maps of the page, each once."""

    def __init__(self, tables: dict[str, ColumnDataSource]) -> None:
        self.tables = tables
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in tables}
        size_in_words = _script("size")
        self.hovers: dict[str, Any] = {
            f"@{name}": CustomJSHover(args={"texts": table}, code="return texts.data.text[value]")
            for name, table in tables.items()
        }
        for name in ("bytes", "padding"):
            self.hovers[f"@{name}"] = CustomJSHover(code=f"{size_in_words}\nreturn in_words(value)")
        self.hovers["@bottom"] = CustomJSHover(code="return value.toLocaleString('en-US')")

    def codes(self, told: Labels) -> dict[str, Any]:
        """A column of numbers for each table."""
        columns = {}
        for name, numbers in self._numbers.items():
            texts = getattr(told, name)
            place = [numbers.setdefault(text, len(numbers)) for text in texts.table]
            columns[name] = np.array(place, np.int32)[texts.codes]
        return columns

    def fill(self) -> None:
        """Puts the texts into the tables."""
        for name, numbers in self._numbers.items():
            self.tables[name].data = {"text": list(numbers)}


def _draw(view: View, told: Labels, found: Sequence[Scheme], by: str, shared: _Shared, y_range: Range1d) -> _Drawn:
    drawn = view.drawn
    boxes = ColumnDataSource(
        {
            "left": drawn.start.astype(np.int32),
            "right": drawn.end.astype(np.int32),
            "bottom": drawn.address.astype(float),
            "top": (drawn.address + drawn.size).astype(float),
            "bytes": drawn.bytes.astype(float),
            "padding": (drawn.size - drawn.bytes).astype(float),
            "name": list(told.name),
            **{f"code_{one.by}": one.codes(told) for one in found},
            **shared.codes(told),
        },
        name=f"boxes {drawn.title}",
    )
    tools: dict[str, Any] = {
        "tools": "pan,box_zoom,wheel_zoom,xwheel_zoom,ywheel_zoom,undo,redo,reset,save",
        "active_scroll": "wheel_zoom",
        "output_backend": "webgl",
        "sizing_mode": "stretch_width",
        "min_border_left": 80,  # so that both time axes are as long
    }
    times = len(drawn.live)
    plot = figure(
        title=f"{drawn.title}: temps {size(drawn.temp_bytes)}, of which {size(drawn.peak_bytes)} live at the peak",
        name=f"map {drawn.title}",
        height=_MAP_HEIGHT,
        x_range=Range1d(0, times, bounds=None),
        y_range=y_range,
        y_axis_label="address",
        **tools,
    )
    current = next(one for one in found if one.by == by)
    glyph = Quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        line_color="#ffffff",
        line_alpha=0.4,
        line_width=0.5,
        fill_color={"field": f"code_{by}", "transform": _mapper(current)},
    )
    renderer = plot.add_glyph(boxes, glyph)
    outlined = ColumnDataSource({side: [] for side in ("left", "right", "bottom", "top")}, name=f"found {drawn.title}")
    outline = plot.add_glyph(outlined, Quad(fill_color=None, line_color="#ff0000", line_width=2.5))
    outline.propagate_hover = False
    plot.add_tools(HoverTool(renderers=[renderer], tooltips=_TOOLTIP, formatters=shared.hovers, name="boxes"))
    for band in filter(lambda band: band.size, drawn.bands[1:]):
        plot.add_layout(Span(location=band.base, dimension="width", line_color="#333333", line_width=1))
        plot.add_layout(_text(0, band.base, f"{band.name} {size(band.size)}"))
    curve = _curve(view, plot, tools)
    for part in view.parts[1:]:
        for one in (plot, curve):
            one.add_layout(Span(location=part.start, dimension="height", line_color="#333333", line_width=1))
    if len(view.parts) > 1:
        for part in view.parts:
            plot.add_layout(_text(part.start, 0, f"{part.module} {size(part.temp_bytes)}"))
    for one in (plot, curve):
        one.yaxis.formatter = CustomJSTickFormatter(code=f"{_script('size')}\nreturn in_words(tick)")
        one.xaxis.formatter.use_scientific = False
    return _Drawn(boxes, outlined, renderer, plot, curve)


def _curve(view: View, plot: figure, tools: dict[str, Any]) -> figure:
    """Live bytes over time, with the peak."""
    drawn = view.drawn
    curve = figure(
        height=_CURVE_HEIGHT,
        x_range=plot.x_range,
        y_range=Range1d(0, 1.15 * max(drawn.temp_bytes, 1)),
        x_axis_label="position in the schedule",
        y_axis_label="live temps",
        **tools,
    )
    times = np.arange(len(drawn.live), dtype=np.int32)
    source = ColumnDataSource(
        {"time": times, "live": drawn.live.astype(float), "at": [*drawn.instructions, ""]}, name=f"live {drawn.title}"
    )
    curve.varea_step(x="time", y1=0, y2="live", step_mode="after", source=source, fill_alpha=0.3)
    line = curve.step(x="time", y="live", mode="after", source=source, line_width=1)
    hover = CustomJSHover(code=f"{_script('size')}\nreturn in_words(value)")
    tips = [("", "@at"), ("position", "@time{0,0}"), ("live", "@live{custom}")]
    curve.add_tools(HoverTool(renderers=[line], mode="vline", tooltips=tips, formatters={"@live": hover}))
    curve.add_layout(
        Span(location=drawn.temp_bytes, dimension="width", line_color="#333333", line_dash="dashed", line_width=1)
    )
    for one in (plot, curve):
        one.add_layout(Span(location=drawn.peak_time + 0.5, dimension="height", line_color="#d62728", line_width=1))
    where = f" at {drawn.peak_at}" if drawn.peak_at else ""
    curve.add_layout(_text(drawn.peak_time, drawn.peak_bytes, f"peak {size(drawn.peak_bytes)}{where}"))
    return curve


def _text(x: float, y: float, text: str) -> Label:
    return Label(x=x, y=y, x_offset=3, y_offset=1, text=text, text_font_size="11px", background_fill_color="#ffffffaa")


def _mapper(one: Scheme) -> LinearColorMapper:
    return LinearColorMapper(palette=list(one.colours), low=-0.5, high=len(one.colours) - 0.5)


def _heading(views: Sequence[View]) -> str:
    first = views[0].drawn
    notes = [
        f"<b>{html.escape(first.module)}</b>, {len(first.instructions):,} positions, {len(first.values):,} buffers"
    ]
    for view in views:
        drawn = view.drawn
        notes.append(
            f"{html.escape(drawn.title)}: temps {size(drawn.temp_bytes)}, peak {size(drawn.peak_bytes)}"
            + (f" at {html.escape(drawn.peak_at)}" if drawn.peak_at else "")
            + f", offsets {drawn.origin}"
        )
    return " &middot; ".join(notes)


def _search(handles: Sequence[dict[str, Any]], tables: dict[str, ColumnDataSource]) -> list[UIElement]:
    """A box to type into, buttons to go through what was found, and what that is."""
    box = TextInput(placeholder="search: instruction, shape, source or operation", width=320, name="search")
    said = Div(text="", width=260, name="found")
    back, forth = Button(label="<", width=32, name="previous"), Button(label=">", width=32, name="next")
    searched = {name: tables[name] for name in ("shape", "source", "op_name")}
    args = {"views": list(handles), "tables": searched, "said": said}
    box.js_on_change("value", CustomJS(args=args, code=f"{_script('search')}\nsearch(cb_obj.value)"))
    for button, by in ((back, -1), (forth, 1)):
        button.js_on_click(CustomJS(args=args, code=f"{_script('search')}\nstep({by})"))
    return [box, back, forth, said]


def _colours(
    found: Sequence[Scheme], colour_by: str, drawn: Sequence[_Drawn], legends: Sequence[Div]
) -> RadioButtonGroup:
    names = [one.by for one in found]
    group = RadioButtonGroup(labels=names, active=names.index(colour_by), name="colour", width=60 * len(names) + 40)
    args = {
        "renderers": [one.renderer for one in drawn],
        "fields": [f"code_{name}" for name in names],
        "mappers": [_mapper(one) for one in found],
        "legends": list(legends),
    }
    group.js_on_change("active", CustomJS(args=args, code=_script("colour")))
    return group


def _extents(views: Sequence[View], y_range: Range1d) -> RadioButtonGroup:
    """Buttons that show a band, or all of them."""
    tallest = max((view.drawn for view in views), key=lambda drawn: drawn.height)
    extents = [(band.name, band.base, band.base + band.size) for band in tallest.bands if band.size]
    extents.append(("all", 0, max(tallest.height, 1)))
    group = RadioButtonGroup(labels=[name for name, _, _ in extents], active=0, name="extent", width=90 * len(extents))
    args = {"y_range": y_range, "extents": [[low, high] for _, low, high in extents]}
    code = "const [low, high] = extents[cb_obj.active]; y_range.setv({start: low, end: high})"
    group.js_on_change("active", CustomJS(args=args, code=code))
    return group


def _legend(one: Scheme, views: Sequence[View], told: Sequence[Labels], visible: bool) -> Div:
    live = [one.live_at_peak(view.drawn, told_) for view, told_ in zip(views, told, strict=True)]
    items = []
    ranked = sorted(range(len(one.names)), key=lambda number: -live[0][number])
    for number in ranked[:_LEGEND]:
        counts = " / ".join(size(counted[number]) for counted in live)
        swatch = f'<span style="background: {one.colours[number]}; padding: 0 0.6em; margin-right: 0.4em"></span>'
        name = html.escape(one.names[number])
        items.append(f'<span style="margin-right: 1.6em; white-space: nowrap">{swatch}{name} {counts}</span>')
    if len(ranked) > _LEGEND:
        items.append(f"and {len(ranked) - _LEGEND} more")
    text = f"<b>by {one.by}</b>, with bytes at the peak:<br>" + " ".join(items)
    return Div(text=text, visible=visible, sizing_mode="stretch_width", name=f"legend {one.by}")


def _script(name: str) -> str:
    return resources.files("xla_stalloc.report.map").joinpath(f"{name}.js").read_text()
