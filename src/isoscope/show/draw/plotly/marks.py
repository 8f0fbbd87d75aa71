"""The marks of a panel: curves with bars and a dashed null, or dots beside their null.

Each is a plotly Figure made for white paper (`colours` says what a dark screen shows instead). Hover
gives the number with six digits, its interval, null, n and note; names and notes are escaped, since
plotly reads a little HTML in them.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable
from functools import cache

import plotly.graph_objects as go

from isoscope.formatting import short
from isoscope.show.colours import GRID, INK, PAPER, SOFT, Pair
from isoscope.show.readings import LAYERED, SiteReading

HEIGHT = 240
LARGE = 360
DOT_HEIGHT = 40
MOST_TICKS = 8
MOST_ASIDE = 0.12
"""Of a layer: curves further aside would look as if one followed the other."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
SYMBOLS = ("circle", "square", "diamond")


def curves(
    own: list[SiteReading],
    beside: list[SiteReading],
    along: str,
    shade: Callable[[SiteReading], str],
    colours: dict[str, Pair],
    *,
    log: bool,
    range_: tuple[float, float],
    height: int,
    apart: float = 0.0,
) -> go.Figure:
    """Curves along layers or steps, one a shade; `beside` is a second measure, drawn dotted.

    Neighbouring curves stand `apart` of the axis's length aside, so that bars do not hide each other.
    """
    figure = blank(height)
    places = [at(r, along) for r in own]
    aside = apart * (max(places) - min(places)) if own else 0.0
    aside = min(aside, MOST_ASIDE) if along == "layer" else aside
    groups = {name: [r for r in own if shade(r) == name] for name in colours}
    _add_nulls(figure, groups, along, colours)
    for i, (name, curve) in enumerate(groups.items()):
        if curve:
            symbol, shift = SYMBOLS[i // 7 % len(SYMBOLS)], aside * (i - (len(groups) - 1) / 2)
            _add_curve(figure, curve, own, along, name, colours[name][0], symbol, shift)
    if beside:
        x, y, hover = _path(beside, beside, along)
        line = {"color": SOFT[0], "width": 1.5, "dash": "dot"}
        figure.add_scatter(x=x, y=y, mode="lines", line=line, hovertext=hover, hoverinfo="text")
    _axes(figure, own, along, log, range_)
    return figure


def _add_curve(
    figure: go.Figure,
    curve: list[SiteReading],
    own: list[SiteReading],
    along: str,
    name: str,
    colour: str,
    symbol: str,
    shift: float,
) -> None:
    x, y, hover = _path(curve, own, along)
    bars = {at(r, along): r for r in curve if r.bounded}
    up = [bars[i].high - bars[i].value if i in bars else 0.0 for i in x]
    down = [bars[i].value - bars[i].low if i in bars else 0.0 for i in x]
    figure.add_scatter(
        x=[place if place is None else place + shift for place in x],
        y=y,
        name=html.escape(name),
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"size": 6, "color": colour, "symbol": symbol},
        error_y={"array": up, "arrayminus": down, "color": colour, "thickness": 1.5, "width": 0},
        hovertext=hover,
        hoverinfo="text",
    )


def _path(
    curve: list[SiteReading], own: list[SiteReading], along: str
) -> tuple[list[int | None], list[float | None], list[str]]:
    """Points in order, broken where a shallow model would be joined to the output across empty layers."""
    points = sorted(curve, key=lambda r: at(r, along))
    deepest = max((r.layer for r in own if r.kind == "layer" and r.layer is not None), default=0)
    x: list[int | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for before, point in zip([None, *points], points, strict=False):
        leaps = before is not None and before.kind == "layer" and point.kind != "layer"
        if along == "layer" and leaps and before is not None and before.layer != deepest:
            x, y, hover = [*x, None], [*y, None], [*hover, ""]
        x, y, hover = [*x, at(point, along)], [*y, point.value], [*hover, telling(point)]
    return x, y, hover


def _add_nulls(
    figure: go.Figure, groups: dict[str, list[SiteReading]], along: str, colours: dict[str, Pair]
) -> None:
    """One dashed line where all curves have the same null, else one for each in its colour."""
    lines = {
        name: {
            at(r, along): r.null for r in sorted(curve, key=lambda r: at(r, along)) if math.isfinite(r.null)
        }
        for name, curve in groups.items()
    }
    shared: dict[int, float] = {}
    for line in lines.values():
        shared = line | shared
    alike = all(
        math.isclose(null, shared[x], rel_tol=1e-2, abs_tol=1e-9)
        for line in lines.values()
        for x, null in line.items()
    )
    for name, line in {"": shared}.items() if alike else lines.items():
        style = {"color": colours[name][0] if name else SOFT[0], "width": 1.5, "dash": "dash"}
        points = dict(sorted(line.items()))
        lone = "lines" if len(points) > 1 else "markers"
        if points:
            figure.add_scatter(
                x=list(points), y=list(points.values()), mode=lone, line=style, hoverinfo="skip", name="null",
                marker={"symbol": "line-ew-open", "size": 16, "color": style["color"]},
            )  # fmt: skip


def dots(
    own: list[SiteReading],
    titles: dict[str, str],
    colours: dict[str, Pair],
    *,
    log: bool,
    range_: tuple[float, float],
) -> go.Figure:
    """Values of one site with their intervals, a row for each measure and model, the null a grey bar."""
    lines = [(measure, name) for measure in titles for name in colours]
    lines = [line for line in lines if any((r.measure, r.model) == line for r in own)]
    height = {line: -float(i) for i, line in enumerate(lines)}
    figure = blank(44 + DOT_HEIGHT * len(lines))
    nulls = [r for r in own if math.isfinite(r.null)]
    figure.add_scatter(
        x=[r.null for r in nulls],
        y=[height[r.measure, r.model] for r in nulls],
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 20, "color": SOFT[0], "line": {"width": 2}},
        hovertext=[telling(r) for r in nulls],
        hoverinfo="text",
        name="null",
    )
    for name, colour in colours.items():
        mine = [r for r in own if r.model == name]
        bounds = {
            "array": [r.high - r.value if r.bounded else 0.0 for r in mine],
            "arrayminus": [r.value - r.low if r.bounded else 0.0 for r in mine],
        }
        figure.add_scatter(
            x=[r.value for r in mine],
            y=[height[r.measure, r.model] for r in mine],
            name=html.escape(name),
            mode="markers",
            marker={"size": 10, "color": colour[0]},
            error_x={**bounds, "color": colour[0], "thickness": 2, "width": 0},
            hovertext=[telling(r) for r in mine],
            hoverinfo="text",
        )
    several = len(colours) > 1
    text = [
        html.escape(f"{titles[m]} · {n}" if several and len(titles) > 1 else n if several else titles[m])
        for m, n in lines
    ]
    text = ["<br>".join(textwrap.wrap(t, 22)) for t in text]
    figure.update_yaxes(
        tickvals=list(height.values()), ticktext=text, showgrid=False, tickfont={"color": INK[0]}
    )
    figure.update_yaxes(range=[-len(lines) + 0.4, 0.6], automargin=True)
    figure.update_layout(margin={"b": 26})
    figure.update_xaxes(showgrid=True, gridcolor=GRID[0], tickangle=0, **scale(log, range_))
    return figure


def at(reading: SiteReading, along: str) -> int:
    """Where a reading stands on the axis."""
    return reading.place if along == "layer" else reading.step or 0


def _axes(
    figure: go.Figure, own: list[SiteReading], along: str, log: bool, range_: tuple[float, float]
) -> None:
    figure.update_xaxes(title={"text": along, "standoff": 8})
    if along == "layer":
        layers = sorted({r.place for r in own if r.kind in LAYERED})
        after = {r.place: r.site for r in own if r.kind not in LAYERED}
        every = math.ceil(len(layers) / MOST_TICKS)
        ticks = {
            place: str(place) for place in layers[::every] if not after or place <= max(layers) - every // 2
        }
        ticks |= after
        figure.update_xaxes(tickvals=list(ticks), ticktext=list(ticks.values()), tickangle=0)
    figure.update_yaxes(automargin=True, **scale(log, range_))


def scale(log: bool, range_: tuple[float, float]) -> dict[str, object]:
    """Range and ticks of an axis of values; `range_` is in powers of ten where `log`."""
    if not log:
        return {"type": "linear", "range": list(range_), "nticks": 6}
    low, high = range_
    leads = (1, 2, 5) if high - low < 2.2 else (1,)
    ticks = [lead * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for lead in leads]
    ticks = [tick for tick in ticks if low <= math.log10(tick) <= high]
    return {"type": "log", "range": list(range_), "tickvals": ticks, "ticktext": [short(t) for t in ticks]}


def blank(height: int) -> go.Figure:
    """An empty panel: soft axes, no legend, nothing to drag."""
    figure = go.Figure(layout=_empty())
    figure.update_layout(height=height)
    return figure


@cache
def _empty() -> go.Layout:
    """Made once: plotly takes 10 ms to make it and 1 ms to copy it, and a page has dozens."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        showlegend=False,
        margin={"l": 44, "r": 12, "t": 8, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": _FONT, "size": 12, "color": SOFT[0]},
        hoverlabel={"bgcolor": PAPER[0], "bordercolor": SOFT[0], "font": {"color": INK[0], "family": _FONT}},
        hovermode="closest",
        dragmode=False,
    )
    plain = {"zeroline": False, "fixedrange": True, "exponentformat": "e"}  # else 0.00002 is written 20µ
    figure.update_xaxes(showgrid=False, showline=True, linecolor=GRID[0], **plain)
    figure.update_yaxes(gridcolor=GRID[0], showline=False, **plain)
    return figure.layout


def telling(reading: SiteReading) -> str:
    """What is said where a reading is pointed at: its value, interval, null, n, site and note."""
    step = f", step {reading.step:,}" if reading.step is not None else ""
    lines = [f"<b>{reading.value:.6g}</b>  {html.escape(reading.measure)}"]
    lines += (
        [f"95 % interval {reading.low:.6g} to {reading.high:.6g}"] if reading.bounded else ["no interval"]
    )
    lines += [f"null {reading.null:.6g}"] if math.isfinite(reading.null) else []
    lines += [f"n {reading.n:,}"]
    lines += [html.escape(f"{reading.site}{step} of {reading.model}")]
    lines += [html.escape(line) for line in textwrap.wrap(reading.note, 56)]
    return "<br>".join(lines)
