"""The two figures of a comparison: mean cosine against drift, one dot a layer, one colour a model.

Each model's layers are joined in order by a thin line, its layer 0 is hollow. In the panel of the
relative drift the dashed curve is its square: when all norms are equal the mean cosine lies on it,
whatever the model, so what the panel shows is how far models leave the curve.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from isoscope.show.colours import SOFT
from isoscope.show.draw.plotly.marks import SYMBOLS, blank, scale
from isoscope.show.figures.panels import Drawn, Panel, palette
from isoscope.show.readings import PLACES, SiteReading, read

HEIGHT = 320
LEAST_DECADES = 0.7
"""A logarithmic axis shows at least so much, so that it has ticks."""

_ACROSS = {"relative_drift": "relative drift", "drift": "drift"}
_UP = "mean_cosine"


@dataclass(frozen=True)
class Dot:
    """One layer of one model: how far it drifts, and how alike its vectors point."""

    x: SiteReading
    y: SiteReading


def scatter(rows: pd.DataFrame) -> Drawn:
    """Mean cosine against relative drift, and against drift; without panels where either is not there."""
    readings = [r for r in read(rows) if r.head is None]
    colours = palette(readings)
    sited = [r for r in readings if r.kind in PLACES and r.known]
    up = {_at(r): r for r in sited if r.measure == _UP}
    panels = []
    for across, label in _ACROSS.items():
        log = across == "drift"
        found = [Dot(r, up[_at(r)]) for r in sited if r.measure == across and _at(r) in up]
        found = [dot for dot in found if dot.x.value > 0 or not log]
        if found:
            groups = {name: [dot for dot in found if dot.x.model == name] for name in colours}
            figure = _panel(groups, label, {name: pair[0] for name, pair in colours.items()}, log)
            remark = "log scale" if log else "dashed: its square"
            hollow = ", hollow: layer 0" if any(_begins(dot) for dot in found) else ""
            panels.append(Panel((across, _UP), f"Mean cosine against {label}", remark + hollow, figure))
    return Drawn(tuple(panels), tuple(colours.items()), tuple(colours.values()))


def _panel(groups: dict[str, list[Dot]], label: str, colours: dict[str, str], log: bool) -> go.Figure:
    figure = blank(HEIGHT)
    dots = [dot for group in groups.values() for dot in group]
    left, right = _span([dot.x.value for dot in dots], log)
    if not log:
        x = [right * i / 60 for i in range(61)]
        line = {"color": SOFT[0], "width": 1.5, "dash": "dash"}
        figure.add_scatter(
            x=x, y=[v * v for v in x], mode="lines", line=line, hoverinfo="skip", name="square"
        )
    for at, (name, group) in enumerate(groups.items()):
        group = sorted(group, key=lambda dot: dot.x.place)
        symbol = SYMBOLS[at // 7 % len(SYMBOLS)]
        figure.add_scatter(
            x=[dot.x.value for dot in group],
            y=[dot.y.value for dot in group],
            name=html.escape(name),
            mode="lines+markers",
            line={"color": colours[name], "width": 1},
            marker={
                "size": 8,
                "color": colours[name],
                "symbol": [f"{symbol}-open" if _begins(dot) else symbol for dot in group],
                "line": {"width": 1.5, "color": colours[name]},
            },
            hovertext=[_hover(dot, label) for dot in group],
            hoverinfo="text",
        )
    bottom, top = _span([dot.y.value for dot in dots], False)
    figure.update_xaxes(title={"text": label, "standoff": 8}, **scale(log, (left, right)))
    figure.update_yaxes(
        title={"text": "mean cosine", "standoff": 8}, automargin=True, **scale(False, (bottom, top))
    )
    figure.update_xaxes(tickangle=0)
    return figure


def _begins(dot: Dot) -> bool:
    return dot.x.kind == "layer" and dot.x.layer == 0


def _at(reading: SiteReading) -> tuple[str, int | None, str]:
    return reading.model, reading.step, reading.site


def _span(values: list[float], log: bool) -> tuple[float, float]:
    """The ends of an axis: around 0 where it is linear, in powers of ten where not."""
    if not log:
        low, high = min(0.0, *values), max(0.0, *values)
        room = 0.06 * ((high - low) or 1.0)
        return low - (room if low < 0 else 0.0), high + room
    low, high = math.log10(min(values)), math.log10(max(values))
    room = max(0.06 * (high - low), (LEAST_DECADES - (high - low)) / 2)
    return low - room, high + room


def _hover(dot: Dot, label: str) -> str:
    lines = [f"<b>mean cosine {dot.y.value:.6g}</b>", f"{label} {dot.x.value:.6g}"]
    return "<br>".join([*lines, html.escape(f"{dot.x.site} of {dot.x.model}")])
