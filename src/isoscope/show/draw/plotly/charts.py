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

from isoscope.show.charts import Alarm, Axis, Chart, Ground, Hover, Label, Map, Series, log_ticks, rounded
from isoscope.show.colours import ALARM, GRID, INK, PAPER, SOFT

Figure = dict[str, Any]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
_LINES, _BELOW = (0.44, 1.0), (0.0, 0.34)  # where lines and the map below them stand, as parts of the height
_CUT = {"color": PAPER[0], "width": 2}
_DASHED = {"color": SOFT[0], "width": 1, "dash": "dash"}
_ALARM = {"color": ALARM[0], "width": 1, "dash": "dot"}
_NAMES = 15  # letters of a place's name that stand level; a longer one is slanted
_BESIDE = 34  # letters of all of them together
_PLACES = {
    "step": "customdata[0]:,", "low": "customdata[1]", "high": "customdata[2]", "cell": "customdata:,",
}  # fmt: skip
"""Where plotly has what the fields of hover text name."""
_WRAPPED = 60  # letters of a line of an alarm's words


def figure(chart: Chart) -> Figure:
    """The figure that plotly's script draws; its key is left to the page."""
    lined, cuts = chart.map is not None and bool(chart.series), chart.map.cuts if chart.map else ()
    data = [trace for one in chart.series for trace in _traces(one, chart.digits)]
    data += [_heatmap(chart.map, below=lined)] if chart.map else []
    layout = {
        "height": chart.height, "showlegend": False,
        "margin": {"l": 44, "r": 12, "t": 8, "b": 40, **chart.margin},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 12, "color": SOFT[0]},
        "hoverlabel": {"bgcolor": PAPER[0], "bordercolor": SOFT[0], "font": {"color": INK[0]}},
        "hovermode": "closest", "dragmode": False, "barmode": "overlay",
        "xaxis": _axis_of_x(chart) | ({"anchor": "y2", "showline": False} if lined else {}),
        "yaxis": _axis_of_y(chart) | ({"domain": list(_LINES)} if lined else {}),
        "yaxis2": {**_axis_of_map(chart.map), "domain": list(_BELOW)} if chart.map and lined else None,
        "shapes": [
            *map(_ground, chart.grounds),
            *(_level(at, "x domain", _DASHED) for at, _ in chart.levels),
            *(_upright(at, "y domain", _DASHED) for at, _ in chart.uprights),
            *(_upright(one.x, "paper", _ALARM) | {"layer": "below", "opacity": 0.6}
              for one in chart.alarms if one.line),
            *(_level(at - 0.5, "paper", _CUT) for at in cuts),
        ] or None,
        "annotations": [
            *(_level_name(math.log10(at) if chart.up.log else at, name) for at, name in chart.levels if name),
            *map(_label, chart.labels), *map(_alarm, chart.alarms),
            *(_head(one) for one in chart.series if one.style == "arrow"),
        ] or None,
        "meta": dict(chart.meta) or None,
    }  # fmt: skip
    return {"data": _finite(data), "layout": _finite(_given(layout))}


def _given(parts: Figure) -> Figure:
    """The parts that are there."""
    return {name: part for name, part in parts.items() if part is not None}


def _finite(value: Any) -> Any:
    """The value with None for every number that JSON has not: a page that holds one cannot be read."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _axis(axis: Axis, more: Figure) -> Figure:
    ticks = log_ticks(*axis.range) if axis.log and axis.range and axis.ticks is None else axis.ticks
    made = {
        "zeroline": axis.zero, "gridcolor": GRID[0], "zerolinecolor": GRID[0],
        "fixedrange": True, "exponentformat": "e",  # else 0.00002 is 20µ
        "title": {"text": _written(axis.name), "standoff": 8} if axis.name else None,
        "type": "log" if axis.log else "linear" if axis.range else None,
        "range": list(axis.range) if axis.range else None,
        "tickvals": None if ticks is None else [at for at, _ in ticks],
        "ticktext": None if ticks is None else [_written(text) for _, text in ticks],
        "nticks": axis.most if ticks is None and axis.most else None,
        "rangemode": "tozero" if axis.floor else None,
        "tickfont": {"color": INK[0]} if axis.rows else None,
        "ticklabelstandoff": 5 if axis.rows else None,
    }  # fmt: skip
    return _given(made) | more


def _axis_of_x(chart: Chart) -> Figure:
    axis, places = chart.across, chart.places
    slanted = max(map(len, places), default=0) > _NAMES or sum(map(len, places)) > _BESIDE
    keyed = all(list(one.x) == [one.name] for one in chart.series)  # the key says it already
    named = bool(places) or (chart.map is not None and isinstance(chart.map.x[0], str))
    made = {
        "showgrid": bool(axis.grid), "showline": axis.line and chart.map is None, "linecolor": GRID[0],
        "tickangle": -30 if slanted else 0,
        "showticklabels": not keyed if places else None,
        "automargin": True if places or chart.centred else None,
        "ticks": "" if chart.map and not chart.series else None,
    } | ({"type": "category"} if named else {})  # fmt: skip
    return _axis(axis, _given(made))


def _axis_of_y(chart: Chart) -> Figure:
    if chart.map and not chart.series:
        return _axis_of_map(chart.map)
    axis = chart.up
    made: Figure = {"showgrid": not axis.rows and axis.grid is not False, "showline": False}
    made |= {"scaleanchor": "x", "scaleratio": 1} if chart.equal else {"automargin": True}
    return _axis(axis, {"nticks": axis.most or 6, **made} if axis.ticks is None and not axis.log else made)


def _axis_of_map(of: Map) -> Figure:
    made: Figure = {"showgrid": False, "showline": False, "ticks": "", "automargin": True}
    if isinstance(of.y[0], str):
        ends = [-0.5, len(of.y) - 0.5]
        made |= {"type": "category", "range": ends[::-1] if of.up.down else ends}
    elif of.up.down:
        made["autorange"] = "reversed"
    return _axis(of.up, made)


def _traces(one: Series, digits: int) -> list[Figure]:
    if one.style == "stack":
        edge = {"color": PAPER[0], "width": 1}
        bar = {"type": "bar", "name": html.escape(one.name), "x": list(one.x), "y": list(one.y), "width": 0.8}
        ends = {"error_y": _bars(one) | {"color": INK[0]}} if one.has_intervals else {}
        bar |= {"base": list(one.base), "marker": {"color": one.paint, "line": edge}}
        return [bar | ends | _hover(one, digits)]
    if one.style == "band":
        return [_edge(one, one.low, digits, ""), _edge(one, one.high, digits, "tonexty")]
    mode = "+".join(part for part, size in (("lines", one.pen), ("markers", one.dot)) if size)
    line = {
        "color": one.paint, "width": one.pen, "dash": one.dash if one.dash != "solid" else None,
        "shape": "hvh" if one.style == "steps" else None,
    }  # fmt: skip
    trace = {
        "type": "scatter", "mode": mode or "none", "name": html.escape(one.name),
        "x": [x if isinstance(x, str) else rounded(x) for x in one.x],
        "y": [rounded(y, digits) for y in one.y],
        "line": _given(line) if one.pen else None, "marker": _marker(one) if one.dot else None,
        "opacity": one.alpha if one.alpha < 1 else None,
        "error_x" if one.across else "error_y": _bars(one) if one.has_intervals and not one.shaded else None,
    }  # fmt: skip
    return [_given(trace) | _hover(one, digits)]


def _marker(one: Series) -> Figure:
    edged = one.mark in ("line-ew", "line-ns")  # a mark that has no inside is drawn by its edge
    alike = isinstance(one.hollow, bool)
    hollows = [bool(one.hollow)] if alike else one.hollows
    symbols = [f"{one.mark}-open" if hollow or edged else one.mark for hollow in hollows]
    thin = edged or bool(one.hollow) or one.mark.endswith("-thin")
    edge = {"width": 2 if thin else 1.5, "color": one.rim} if one.edge or thin else None
    symbol = symbols[0] if alike else symbols
    return _given({"size": one.dot, "color": one.paint, "symbol": symbol, "line": edge})


def _bars(one: Series) -> Figure:
    up, down = [], []
    for value, low, high in zip(one.x if one.across else one.y, one.low, one.high, strict=True):
        there = isinstance(value, int | float) and math.isfinite(low) and math.isfinite(high)
        up.append(high - float(value or 0) if there else 0.0)
        down.append(float(value or 0) - low if there else 0.0)
    bars = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
    return bars | {"color": one.paint, "thickness": one.bar, "width": 0}


def _edge(one: Series, ends: Sequence[float], digits: int, fill: str) -> Figure:
    """One end of a band; the area is that down to the trace before it."""
    area = {"fill": fill, "fillcolor": one.paint} if fill else {}
    return area | {
        "type": "scatter", "x": list(one.x), "y": [rounded(y, digits) for y in ends], "mode": "lines",
        "line": {"width": 0, "color": one.paint}, "hoverinfo": "skip", "name": html.escape(one.name),
    }  # fmt: skip


def _hover(one: Series, digits: int) -> Figure:
    if one.told:
        made: Figure = {"hovertext": [told_html(each) for each in one.told], "hoverinfo": "text"}
    else:
        made = {"hovertemplate": _pattern(one.pattern)} if one.pattern else {"hoverinfo": "skip"}
    if one.steps:
        ends = zip(one.low, one.high, strict=True) if one.has_intervals else [()] * len(one.steps)
        made["customdata"] = [[step, *(rounded(v, digits) for v in end)]
                              for step, end in zip(one.steps, ends, strict=True)]  # fmt: skip
    elif one.ids:
        made["customdata"] = [list(each) for each in one.ids]
    return made


def told_html(told: Hover | str) -> str:
    """Hover text as plotly reads it."""
    if isinstance(told, str):
        return html.escape(told)
    first = f"<b>{html.escape(told.bold)}</b>" if told.bold else ""
    return "<br>".join([first + html.escape(told.rest), *map(html.escape, told.lines)])


def _pattern(told: Hover) -> str:
    text = re.sub(
        r"\{(\w+)(:[^}]*)?\}", lambda m: f"%{{{_PLACES.get(m[1], m[1])}{m[2] or ''}}}", told_html(told)
    )
    return f"{text}<extra></extra>"


def _heatmap(of: Map, *, below: bool) -> Figure:
    bar = {
        "thickness": 8, "outlinewidth": 0, "x": 1.02, "xpad": 4, "ypad": 0,
        "tickvals": [at for at, _ in of.bar], "ticktext": [text for _, text in of.bar],
    }  # fmt: skip
    bar |= {"y": _BELOW[0], "yanchor": "bottom", "len": _BELOW[1] - _BELOW[0]} if below else {}
    told = [[told_html(told) if told else "" for told in line] for line in of.told]
    made = {
        "type": "heatmap", "x": list(of.x), "y": list(of.y), "yaxis": "y2" if below else None,
        "z": [[rounded(z, of.digits) for z in line] for line in of.cells],
        "colorscale": [[i / (len(of.stops) - 1), pair[0]] for i, pair in enumerate(of.stops)],
        "zmin": of.low, "zmax": of.high, "xgap": int(of.apart), "ygap": int(of.apart), "hoverongaps": False,
        "colorbar": bar if of.bar else None, "showscale": None if of.bar else False,
        "hovertext": told or None, "hoverinfo": "text" if told else None,
        "hovertemplate": _pattern(of.pattern) if of.pattern and not told else None,
        "text": [list(map(html.escape, line)) for line in of.text] or None, "meta": dict(of.meta) or None,
    }  # fmt: skip
    return _given(made)


def _ground(one: Ground) -> Figure:
    made: Figure = {"fillcolor": one.colour[0], "line": {"width": 0}}
    made |= {"layer": "below", "opacity": one.opacity}
    if not one.y:
        ends = {"x0": one.x[0], "x1": one.x[-1], "y0": 0, "y1": 1, "yref": "y domain", "xref": "x"}
        return {"type": "rect", **ends, **made}
    points = [f"{x:.4f},{y:.4f}" for x, y in zip(one.x, one.y, strict=True)]
    return {"type": "path", "path": f"M{' L'.join(points)}Z", **made}


def _level(at: float, across: str, line: Figure) -> Figure:
    return {"type": "line", "x0": 0, "x1": 1, "xref": across, "y0": at, "y1": at, "yref": "y", "line": line}


def _upright(at: float, up: str, line: Figure) -> Figure:
    return {"type": "line", "x0": at, "x1": at, "xref": "x", "y0": 0, "y1": 1, "yref": up, "line": line}


def _level_name(at: float, name: str) -> Figure:
    return {
        "x": 1, "xref": "x domain", "xanchor": "right", "y": at, "yref": "y", "yanchor": "bottom",
        "text": html.escape(name), "font": {"size": 11, "color": SOFT[0]}, "showarrow": False,
        "bgcolor": PAPER[0], "borderpad": 0, "yshift": 2,
    }  # fmt: skip


def _label(one: Label) -> Figure:
    made: Figure = {"y": one.y, "text": _written(one.text), "showarrow": False, "yanchor": "middle"}
    if one.x is None:
        return made | {"x": 1, "xref": "paper", "xanchor": "right", "font": {"color": INK[0], "size": 12}}
    return made | {"x": one.x, "font": {"size": 11}}


def _alarm(one: Alarm) -> Figure:
    lines = [html.escape(line) for words in one.words for line in textwrap.wrap(words, _WRAPPED)]
    label = {"bgcolor": PAPER[0], "bordercolor": ALARM[0], "font": {"color": INK[0], "size": 12}}
    return {
        "x": one.x, "y": 1, "xref": "x", "yref": "paper", "yanchor": "bottom", "text": "▼",
        "showarrow": False, "font": {"color": ALARM[0], "size": 11}, "hovertext": "<br>".join(lines),
        "hoverlabel": label, "captureevents": True,
    }  # fmt: skip


def _head(one: Series) -> Figure:
    return {
        "x": one.x[-1], "y": one.y[-1], "ax": one.x[0], "ay": one.y[0], "xref": "x", "yref": "y",
        "axref": "x", "ayref": "y", "text": "", "showarrow": True, "arrowhead": 2, "arrowsize": 1.4,
        "arrowwidth": one.pen, "arrowcolor": one.paint,
    }  # fmt: skip


def _written(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


@cache
def library() -> str:
    """Plotly's script."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def carried() -> str:
    """Plotly's script as a page carries it: gzip in base64, 2 MB of letters in place of 4.8."""
    return base64.b64encode(gzip.compress(library().encode(), 5, mtime=0)).decode()
