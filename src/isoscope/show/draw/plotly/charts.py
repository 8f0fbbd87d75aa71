"""Charts drawn for the page: each a plotly figure for white paper, with the colours of its series."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from isoscope.show.charts import Chart, Series
from isoscope.show.colours import MODELS, PAPER, SOFT, Pair, sequence
from isoscope.show.draw.plotly.marks import HEIGHT, MOST_TICKS, SYMBOLS, blank, scale
from isoscope.show.figures.panels import Panel

LAYER = "layer"  # along layers, curves stand a little aside, so that bars do not hide each other
DASHES = ("solid", "dash", "dot")
_NAMES = 15  # letters of a place's name that stand level; a longer one is slanted
_BESIDE = 34  # letters of all of them together


@dataclass(frozen=True)
class Look:
    """How a series looks: its colour, and the turn in which colours come again with other marks."""

    pair: Pair
    turn: int = 0

    @property
    def dash(self) -> str:
        """Of its line."""
        return DASHES[self.turn % len(DASHES)]

    @property
    def symbol(self) -> str:
        """Of its dots."""
        return SYMBOLS[self.turn % len(SYMBOLS)]


def looks(charts: Sequence[Chart]) -> list[dict[str, Look]]:
    """How each chart's series look, by name: a name looks alike in all charts that are not ordered."""
    names = dict.fromkeys(one.name for chart in charts if not chart.ordered for one in chart.series)
    shared = {name: Look(MODELS[i % len(MODELS)], i // len(MODELS)) for i, name in enumerate(names)}
    found = []
    for chart in charts:
        own = list(dict.fromkeys(one.name for one in chart.series))
        shades = [Look(pair) for pair in sequence(len(own))] if chart.ordered and own else []
        found.append(dict(zip(own, shades, strict=True)) if chart.ordered else {n: shared[n] for n in own})
    return found


def panel(chart: Chart, look: Mapping[str, Look], measures: tuple[str, ...] = ()) -> Panel:
    """A chart as a panel of the page; its key is left to the page."""
    named = any(isinstance(x, str) for one in chart.series for x in one.x)
    figure = blank(HEIGHT + (30 if named else 0))
    for level, name in chart.levels:
        _add_level(figure, level, name)
    aside = 0.3 / len(chart.series) if chart.x == LAYER and len(chart.series) > 2 else 0.0
    for i, one in enumerate(chart.series):
        _add(figure, one, look[one.name], aside * (i - (len(chart.series) - 1) / 2))
    figure.update_xaxes(title={"text": html.escape(chart.x), "standoff": 8}, tickangle=0, automargin=True)
    if named:
        letters = [len(str(place)) for place in {x for one in chart.series for x in one.x}]
        slanted = max(letters, default=0) > _NAMES or sum(letters) > _BESIDE
        told = all(list(one.x) == [one.name] for one in chart.series)  # the key says it already
        figure.update_xaxes(type="category", tickangle=-30 if slanted else 0, showticklabels=not told)
    elif chart.x == LAYER:
        there = sorted({int(x) for one in chart.series for x in one.x if not isinstance(x, str)})
        figure.update_xaxes(tickvals=there[:: math.ceil(len(there) / MOST_TICKS) or 1])
    elif chart.log_x:
        figure.update_xaxes(**_log([x for one in chart.series for x in one.x]))
    figure.update_yaxes(title={"text": html.escape(chart.y), "standoff": 6}, automargin=True, nticks=6)
    if chart.log_y:
        ends = [y for one in chart.series for y in (*one.y, *one.low, *one.high)]
        figure.update_yaxes(**_log(ends))
    if chart.centred:
        figure.update_xaxes(range=[-chart.reach, chart.reach])
        figure.update_yaxes(range=[-chart.reach, chart.reach])
    remark = ", ".join(filter(None, [chart.remark, "log scale" if chart.log_y else ""]))
    return Panel(measures, chart.title, remark, figure)


def _add_level(figure: go.Figure, level: float, name: str) -> None:
    figure.add_hline(
        y=level,
        line={"color": SOFT[0], "width": 1, "dash": "dash"},
        annotation={
            "text": html.escape(name),
            "font": {"size": 11, "color": SOFT[0]},
            "showarrow": False,
            "bgcolor": PAPER[0],
            "borderpad": 0,
            "yshift": 2,
        },
        annotation_position="top right",
    )


def _add(figure: go.Figure, one: Series, look: Look, shift: float) -> None:
    colour = look.pair[0]
    bounded = any(not math.isnan(end) for end in one.low)
    modes = {"dots": "markers", "thin": "lines", "line": "lines+markers" if bounded else "lines"}
    told = one.told or [""] * len(one.x)
    figure.add_scatter(
        x=[x if isinstance(x, str) else x + shift for x in one.x],
        y=[None if math.isnan(y) else y for y in one.y],
        mode=modes[one.style],
        line={"color": colour, "width": 1 if one.style == "thin" else 2, "dash": look.dash},
        opacity=0.55 if one.style == "thin" else 1,
        marker={"color": colour, "size": 6, "symbol": look.symbol, "opacity": 1 if bounded else 0.75},
        error_y=_bars(one, colour) if bounded else None,
        hovertext=[_told(one, i, told[i]) for i in range(len(one.x))],
        hoverinfo="text",
        name=html.escape(one.name),
    )


def _bars(one: Series, colour: str) -> dict[str, object]:
    reach = [(h - y, y - l) for y, l, h in zip(one.y, one.low, one.high, strict=True)]  # noqa: E741
    up, down = ([0.0 if math.isnan(end) else end for end in ends] for ends in zip(*reach, strict=True))
    return {"array": up, "arrayminus": down, "color": colour, "thickness": 1.5, "width": 0}


def _told(one: Series, i: int, more: str) -> str:
    lines = [f"<b>{one.y[i]:.6g}</b>  {html.escape(one.name)}"]
    if one.low and not math.isnan(one.low[i]):
        lines.append(f"95 % interval {one.low[i]:.6g} to {one.high[i]:.6g}")
    x = one.x[i]
    lines.append(html.escape(x if isinstance(x, str) else f"at {x:.6g}"))
    return "<br>".join([*lines, *([html.escape(more)] if more else [])])


def _log(values: Sequence[float | str]) -> dict[str, object]:
    """Range and ticks of a log axis; what is not positive has no place on it."""
    there = [float(v) for v in values if not isinstance(v, str) and v > 0 and math.isfinite(v)]
    if not there:
        return {"type": "linear"}
    low, high = math.log10(min(there)), math.log10(max(there))
    aside = max(0.04 * (high - low), 0.02)
    return scale(True, (low - aside, high + aside))
