"""Charts drawn for the page: each becomes the JSON of a plotly figure, and plotly's script.

Names are escaped, since plotly reads HTML in them. Figures are plain dictionaries: plotly's Python classes
would take seconds for thousands of traces.
"""

from __future__ import annotations

import base64
import gzip
import html
import math
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any

from isoscope.show.charts import Alarm, Axis, Chart, Ground, Label, Map, Series, Told, log_ticks
from isoscope.show.colours import ALARM, GRID, INK, PAPER, SOFT

Figure = dict[str, Any]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
_LINES, _BELOW = (0.44, 1.0), (0.0, 0.34)  # where lines and the map below them stand, as parts of the height
_CUT = {"color": PAPER[0], "width": 2}
_NAMES = 15  # letters of a place's name that stand level; a longer one is slanted
_BESIDE = 34  # letters of all of them together
_PLACES = {
    "step": "customdata[0]:,", "low": "customdata[1]", "high": "customdata[2]", "cell": "customdata:,",
}  # fmt: skip
"""Where plotly has what the fields of hover text name."""
_WRAPPED = 60  # letters of a line of an alarm's words


def figure(chart: Chart) -> Figure:
    """The figure that plotly's script draws; its key is left to the page."""
    data = [trace for one in chart.series for trace in _traces(one, chart.digits)]
    data += [_heatmap(chart.map, below=bool(chart.series))] if chart.map else []
    layout: Figure = {
        "height": chart.height, "showlegend": False,
        "margin": {"l": 44, "r": 12, "t": 8, "b": 40, **chart.margin},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 12, "color": SOFT[0]},
        "hoverlabel": {"bgcolor": PAPER[0], "bordercolor": SOFT[0], "font": {"color": INK[0]}},
        "hovermode": "closest", "dragmode": False,
        "xaxis": _axis_of_x(chart), "yaxis": _axis_of_y(chart),
        "shapes": [
            *map(_ground, chart.grounds), *_dashed(chart),
            *(_alarm_line(one) for one in chart.alarms if one.line),
            *(_level(at - 0.5, "paper", _CUT) for at in (chart.map.cuts if chart.map else ())),
        ],
        "annotations": [
            *_level_names(chart), *map(_label, chart.labels), *map(_alarm, chart.alarms),
            *(_head(one) for one in chart.series if one.style == "arrow"),
        ],
    }  # fmt: skip
    if chart.map and chart.series:
        layout["yaxis2"] = {**_axis(chart.map.up, _lines_of(chart.map)), "domain": list(_BELOW)}
        layout["yaxis"]["domain"] = list(_LINES)
        layout["xaxis"] |= {"anchor": "y2", "showline": False}
    if chart.meta:
        layout["meta"] = dict(chart.meta)
    shown = {name: part for name, part in layout.items() if part != []}
    return {"data": _finite(data), "layout": _finite(shown)}


def _finite(value: Any) -> Any:
    """The value with None for every number that JSON has not: a page that holds one cannot be read."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _axis(axis: Axis, more: Figure) -> Figure:
    made: Figure = {"zeroline": axis.zero, "fixedrange": True, "exponentformat": "e"}  # else 0.00002 is 20µ
    made |= {"gridcolor": GRID[0], "zerolinecolor": GRID[0]}
    if axis.name:
        made["title"] = {"text": _written(axis.name), "standoff": 8}
    if axis.range:
        made |= {"type": "log" if axis.log else "linear", "range": list(axis.range)}
    elif axis.log:
        made["type"] = "log"
    ticks = log_ticks(*axis.range) if axis.log and axis.range and axis.ticks is None else axis.ticks
    if ticks is not None:
        made |= {"tickvals": [at for at, _ in ticks], "ticktext": [_written(text) for _, text in ticks]}
    elif axis.most:
        made["nticks"] = axis.most
    if axis.floor:
        made["rangemode"] = "tozero"
    if axis.rows:
        made |= {"tickfont": {"color": INK[0]}, "ticklabelstandoff": 5}
    return made | more


def _axis_of_x(chart: Chart) -> Figure:
    axis, places = chart.across, chart.places
    lined = axis.line and chart.map is None
    made = {"showgrid": bool(axis.grid), "showline": lined, "linecolor": GRID[0], "tickangle": 0}
    if places:
        slanted = max(map(len, places)) > _NAMES or sum(map(len, places)) > _BESIDE
        keyed = all(list(one.x) == [one.name] for one in chart.series)  # the key says it already
        made |= {"type": "category", "tickangle": -30 if slanted else 0, "showticklabels": not keyed}
    if places or chart.centred:
        made["automargin"] = True
    if chart.map and isinstance(chart.map.x[0], str):
        made["type"] = "category"
    return _axis(axis, made | ({"ticks": ""} if chart.map and not chart.series else {}))


def _axis_of_y(chart: Chart) -> Figure:
    if chart.map and not chart.series:
        return _axis(chart.map.up, _lines_of(chart.map))
    axis = chart.up
    made: Figure = {"showgrid": not axis.rows and axis.grid is not False, "showline": False}
    made |= {"scaleanchor": "x", "scaleratio": 1} if chart.equal else {"automargin": True}
    return _axis(axis, {"nticks": axis.most or 6, **made} if axis.ticks is None and not axis.log else made)


def _lines_of(of: Map) -> Figure:
    """The axis of a map's lines."""
    named = isinstance(of.y[0], str)
    made: Figure = {"showgrid": False, "showline": False, "ticks": "", "automargin": True}
    if named:
        ends = [-0.5, len(of.y) - 0.5]
        made |= {"type": "category", "range": ends[::-1] if of.up.down else ends}
    elif of.up.down:
        made["autorange"] = "reversed"
    return made


def _traces(one: Series, digits: int) -> list[Figure]:
    if one.style == "band":
        return [_edge(one, one.low, digits, ""), _edge(one, one.high, digits, "tonexty")]
    mode = "+".join(part for part, size in (("lines", one.pen), ("markers", one.dot)) if size)
    x, y = [x if isinstance(x, str) else _number(x) for x in one.x], [_number(y, digits) for y in one.y]
    trace: Figure = {"type": "scatter", "x": x, "y": y, "mode": mode or "none", "name": html.escape(one.name)}
    if one.pen:
        trace["line"] = {"color": one.paint, "width": one.pen}
        trace["line"] |= {"dash": one.dash} if one.dash != "solid" else {}
        trace["line"] |= {"shape": "hvh"} if one.style == "steps" else {}
    if one.dot:
        trace["marker"] = _marker(one)
    if one.alpha < 1:
        trace["opacity"] = one.alpha
    if one.has_intervals and not one.shaded:
        trace["error_x" if one.across else "error_y"] = _bars(one)
    return [trace | _hover(one, digits)]


def _marker(one: Series) -> Figure:
    edged = one.mark in ("line-ew", "line-ns")  # a mark that has no inside is drawn by its edge
    alike = isinstance(one.hollow, bool)
    hollows = [bool(one.hollow)] if alike else one.hollows
    symbols = [f"{one.mark}-open" if hollow or edged else one.mark for hollow in hollows]
    made: Figure = {"size": one.dot, "color": one.paint, "symbol": symbols[0] if alike else symbols}
    thin = edged or bool(one.hollow) or one.mark.endswith("-thin")
    if one.edge or thin:
        made["line"] = {"width": 2 if thin else 1.5, "color": one.rim}
    return made


def _bars(one: Series) -> Figure:
    values = one.x if one.across else one.y
    up, down = [], []
    for value, low, high in zip(values, one.low, one.high, strict=True):
        there = isinstance(value, int | float) and math.isfinite(low) and math.isfinite(high)
        up.append(high - float(value or 0) if there else 0.0)
        down.append(float(value or 0) - low if there else 0.0)
    bars = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
    return bars | {"color": one.paint, "thickness": one.bar, "width": 0}


def _edge(one: Series, ends: Sequence[float], digits: int, fill: str) -> Figure:
    """One end of a band; the area is that down to the trace before it."""
    made: Figure = {"type": "scatter", "x": list(one.x), "y": [_number(y, digits) for y in ends]}
    made |= {"mode": "lines", "line": {"width": 0, "color": one.paint}, "hoverinfo": "skip"}
    made["name"] = html.escape(one.name)
    return made | ({"fill": fill, "fillcolor": one.paint} if fill else {})


def _hover(one: Series, digits: int) -> Figure:
    if one.told:
        made: Figure = {"hovertext": [told_html(each) for each in one.told], "hoverinfo": "text"}
    elif one.pattern:
        made = {"hovertemplate": _pattern(one.pattern)}
    else:
        made = {"hoverinfo": "skip"}
    if one.steps:
        ends = zip(one.low, one.high, strict=True) if one.has_intervals else [()] * len(one.steps)
        made["customdata"] = [[step, *(_number(v, digits) for v in end)]
                              for step, end in zip(one.steps, ends, strict=True)]  # fmt: skip
    elif one.ids:
        made["customdata"] = [list(each) for each in one.ids]
    return made


def told_html(told: Told | str) -> str:
    """Hover text as plotly reads it."""
    if isinstance(told, str):
        return html.escape(told)
    first = f"<b>{html.escape(told.bold)}</b>" if told.bold else ""
    return "<br>".join([first + html.escape(told.rest), *map(html.escape, told.lines)])


def _pattern(told: Told) -> str:
    text = re.sub(
        r"\{(\w+)(:[^}]*)?\}", lambda m: f"%{{{_PLACES.get(m[1], m[1])}{m[2] or ''}}}", told_html(told)
    )
    return f"{text}<extra></extra>"


def _heatmap(of: Map, *, below: bool) -> Figure:
    gap = 1 if of.apart else 0
    made: Figure = {
        "type": "heatmap", "x": list(of.x), "y": list(of.y),
        "z": [[_number(z, of.digits) for z in line] for line in of.cells],
        "colorscale": [[i / (len(of.stops) - 1), pair[0]] for i, pair in enumerate(of.stops)],
        "zmin": of.low, "zmax": of.high, "xgap": gap, "ygap": gap, "hoverongaps": False,
        "colorbar": {
            "thickness": 8, "outlinewidth": 0, "x": 1.02, "xpad": 4, "ypad": 0,
            "tickvals": [at for at, _ in of.bar], "ticktext": [text for _, text in of.bar],
        },
    }  # fmt: skip
    if of.told:
        made["hovertext"] = [[told_html(told) if told else "" for told in line] for line in of.told]
        made["hoverinfo"] = "text"
    elif of.pattern:
        made["hovertemplate"] = _pattern(of.pattern)
    if of.text:
        made["text"] = [list(map(html.escape, line)) for line in of.text]
    if of.meta:
        made["meta"] = dict(of.meta)
    if below:
        made["yaxis"] = "y2"
        made["colorbar"] |= {"y": _BELOW[0], "yanchor": "bottom", "len": _BELOW[1] - _BELOW[0]}
    return made


def _ground(one: Ground) -> Figure:
    made: Figure = {"fillcolor": one.colour[0], "line": {"width": 0}}
    made |= {"layer": "below", "opacity": one.opacity}
    if not one.y:
        ends = {"x0": one.x[0], "x1": one.x[-1], "y0": 0, "y1": 1, "yref": "y domain", "xref": "x"}
        return {"type": "rect", **ends, **made}
    points = [f"{x:.4f},{y:.4f}" for x, y in zip(one.x, one.y, strict=True)]
    return {"type": "path", "path": f"M{' L'.join(points)}Z", **made}


def _dashed(chart: Chart) -> list[Figure]:
    line = {"color": SOFT[0], "width": 1, "dash": "dash"}
    return [_level(at, "x domain", line) for at, _ in chart.levels] + [
        {"type": "line", "x0": at, "x1": at, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain", "line": line}
        for at, _ in chart.uprights
    ]


def _level(at: float, across: str, line: Figure) -> Figure:
    return {"type": "line", "x0": 0, "x1": 1, "xref": across, "y0": at, "y1": at, "yref": "y", "line": line}


def _level_names(chart: Chart) -> list[Figure]:
    return [
        {"x": 1, "xref": "x domain", "xanchor": "right",
         "y": math.log10(at) if chart.up.log else at, "yref": "y",
         "yanchor": "bottom", "text": html.escape(name), "font": {"size": 11, "color": SOFT[0]},
         "showarrow": False, "bgcolor": PAPER[0], "borderpad": 0, "yshift": 2}
        for at, name in chart.levels if name
    ]  # fmt: skip


def _label(one: Label) -> Figure:
    made: Figure = {"y": one.y, "text": _written(one.text), "showarrow": False, "yanchor": "middle"}
    if one.x is None:
        return made | {"x": 1, "xref": "paper", "xanchor": "right", "font": {"color": INK[0], "size": 12}}
    return made | {"x": one.x, "font": {"size": 11}}


def _alarm_line(one: Alarm) -> Figure:
    return {
        "type": "line", "x0": one.x, "x1": one.x, "y0": 0, "y1": 1, "xref": "x", "yref": "paper",
        "layer": "below", "opacity": 0.6, "line": {"color": ALARM[0], "width": 1, "dash": "dot"},
    }  # fmt: skip


def _alarm(one: Alarm) -> Figure:
    lines = [html.escape(line) for words in one.words for line in textwrap.wrap(words, _WRAPPED)]
    label = {"bgcolor": PAPER[0], "bordercolor": ALARM[0], "font": {"color": INK[0], "size": 12}}
    return {
        "x": one.x, "y": 1, "xref": "x", "yref": "paper", "yanchor": "bottom", "text": "▼",
        "showarrow": False, "font": {"color": ALARM[0], "size": 11}, "hovertext": "<br>".join(lines),
        "hoverlabel": label, "captureevents": True,
    }  # fmt: skip


def _head(one: Series) -> Figure:
    """The head of an arrow from the first point of a series to its last."""
    return {
        "x": one.x[-1], "y": one.y[-1], "ax": one.x[0], "ay": one.y[0], "xref": "x", "yref": "y",
        "axref": "x", "ayref": "y", "text": "", "showarrow": True, "arrowhead": 2, "arrowsize": 1.4,
        "arrowwidth": one.pen, "arrowcolor": one.paint,
    }  # fmt: skip


def _written(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def _number(value: float | None, digits: int = 0) -> float | None:
    """A number as JSON has it, in as many digits as a figure shows; None for what is not one."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}") if digits else value


@cache
def library() -> str:
    """Plotly's script."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def carried() -> str:
    """Plotly's script as a page carries it: gzip in base64, 1.9 MB of letters in place of 4.8."""
    return base64.b64encode(gzip.compress(library().encode(), 9, mtime=0)).decode()
