"""One measure along the steps: a line a layer, coloured by depth, and under it layers × steps as a map.

Decided here: line and map stand on one axis, so that what is seen in one can be found in the other. Of more
than `MOST_LINES` layers so many are drawn as lines, evenly spaced, on a band from the least to the largest of
all; the map has every layer. A step without a value is a gap. Intervals are told on hover: bars of a dozen
lines at eighty steps would hide the lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from isoscope.formatting import short
from isoscope.show.colours import AMOUNT, GRID, MODELS, SIGNED, SOFT, Pair, sequence
from isoscope.show.draw.plotly.marks import blank, scale
from isoscope.show.figures.panels import range_of, wants_log
from isoscope.show.figures.step_axis import StepAxis
from isoscope.show.readings import ATTENTION, PLACES, SiteReading

MOST_LINES = 13
MOST_KEYS = 7
HEIGHT, LARGE = 230, 390
_MARKED = 12
"""Up to so many steps a line has a mark at each."""
_LINES, _MAP = (0.44, 1.0), (0.0, 0.34)
"""Where lines and map stand, as parts of the height."""
_ALIKE = 0.03
"""Nulls that differ by less of the axis are drawn as one line."""
OWN = MODELS[0]
"""The colour of the loop's own numbers, which are of no layer."""


@dataclass(frozen=True)
class Depths:
    """Every place that was measured, what it is called, and its colour, the same in all figures of a page."""

    names: dict[int, str]

    @property
    def colours(self) -> dict[int, Pair]:
        """From the first layer to the last."""
        return dict(zip(self.names, sequence(len(self.names)), strict=True))

    @property
    def key(self) -> tuple[tuple[str, Pair], ...]:
        """A few of them, evenly spaced, the first and the last among them."""
        shown = spaced(list(self.names), MOST_KEYS)
        return tuple((self.names[place], self.colours[place]) for place in shown)


def depths(readings: Sequence[SiteReading]) -> Depths:
    """The places of these readings, by depth; the attention of block i stands where layer i does."""
    found = {
        r.place: r.site if r.layer is None else f"layer {r.layer}"
        for r in readings
        if r.kind in (*PLACES, *ATTENTION)
    }
    return Depths(dict(sorted(found.items())))


def trajectory(
    own: list[SiteReading], axis: StepAxis, places: Depths, *, mapped: bool
) -> tuple[go.Figure, str]:
    """The figure of one measure, of sites of one kind, and what to know of its scale."""
    sites = sorted({r.place for r in own})
    finite = [r for r in own if r.known]
    log = wants_log(finite)
    low, high = range_of(finite, log)
    figure = blank(LARGE if mapped else HEIGHT)
    lined = spaced(sites, MOST_LINES)
    if len(lined) < len(sites):
        _add_band(figure, own, axis)
    _add_null(figure, finite, axis, high - low, log)
    for place in lined:
        colour = OWN if own[0].kind == "training" else places.colours[place]
        _add_line(figure, [r for r in own if r.place == place], axis, colour[0])
    figure.update_layout(margin={"t": 20, "r": 48 if mapped else 12})
    figure.update_xaxes(range=list(axis.range), title={"text": "step", "standoff": 6}, tickangle=0)
    ticks = axis.ticks()
    figure.update_xaxes(tickvals=[axis.at(step) for step in ticks], ticktext=[f"{step:,}" for step in ticks])
    figure.update_yaxes(automargin=True, **scale(log, (low, high)))
    if mapped:
        _add_map(figure, own, sites, axis, places, log, (low, high))
    told = f"{len(lined)} of {len(sites)} layers as lines" if len(lined) < len(sites) else ""
    return figure, ", ".join(filter(None, [told, "log scale" if log else ""]))


def spaced(items: list[int], most: int) -> list[int]:
    """At most so many, evenly spaced, the first and the last among them.

    >>> spaced([0, 1, 2, 3, 4, 5, 6], 4)
    [0, 2, 4, 6]
    """
    if len(items) <= most:
        return items
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def _add_line(figure: go.Figure, line: list[SiteReading], axis: StepAxis, colour: str) -> None:
    at = {r.step: r for r in line}
    shown = [step for step in axis.steps if step in at]
    bounded = any(r.bounded for r in line)
    where = f"{line[0].site}<br>step %{{customdata[0]:,}}"
    interval = "<br>95 % interval %{customdata[1]} to %{customdata[2]}" if bounded else ""
    ends = [[number(at[s].low), number(at[s].high)] if bounded else [] for s in shown]
    figure.add_scatter(
        x=[axis.at(step) for step in shown],
        y=[number(at[step].value) for step in shown],
        customdata=[[step, *end] for step, end in zip(shown, ends, strict=True)],
        mode="lines+markers" if len(axis.steps) <= _MARKED else "lines",
        line={"color": colour, "width": 1.75},
        marker={"size": 5, "color": colour},
        hovertemplate=f"<b>%{{y:.4g}}</b>  {where}{interval}<extra></extra>",
    )


def _add_band(figure: go.Figure, own: list[SiteReading], axis: StepAxis) -> None:
    """From the least to the largest of all layers."""
    values = {step: [r.value for r in own if r.step == step and r.known] for step in axis.steps}
    shown = [step for step in axis.steps if values[step]]
    for pick, fill in ((min, None), (max, "tonexty")):
        figure.add_scatter(
            x=[axis.at(step) for step in shown],
            y=[number(pick(values[step])) for step in shown],
            mode="lines",
            line={"width": 0, "color": GRID[0]},
            fill=fill,
            fillcolor=GRID[0],
            hoverinfo="skip",
        )


def _add_null(figure: go.Figure, own: list[SiteReading], axis: StepAxis, span: float, log: bool) -> None:
    """One dashed line where all layers have nearly the same null."""
    nulls = {step: [r.null for r in own if r.step == step and math.isfinite(r.null)] for step in axis.steps}
    shown = [step for step in axis.steps if nulls[step] and (not log or min(nulls[step]) > 0)]
    if not shown or any(_size(nulls[step], log) > _ALIKE * span for step in shown):
        return
    figure.add_scatter(
        x=[axis.at(step) for step in shown],
        y=[number(sum(nulls[step]) / len(nulls[step])) for step in shown],
        mode="lines" if len(shown) > 1 else "markers",
        line={"color": SOFT[0], "width": 1.5, "dash": "dash"},
        marker={"color": SOFT[0]},
        hovertemplate="null %{y:.3g}<extra></extra>",
    )


def _size(values: list[float], log: bool) -> float:
    return math.log10(max(values) / min(values)) if log else max(values) - min(values)


def _add_map(
    figure: go.Figure,
    own: list[SiteReading],
    sites: list[int],
    axis: StepAxis,
    places: Depths,
    log: bool,
    range_: tuple[float, float],
) -> None:
    at = {(r.place, r.step): r.value for r in own if r.known and (not log or r.value > 0)}
    values = [[at.get((place, step)) for step in axis.steps] for place in sites]
    found = [math.log10(v) if log else v for line in values for v in line if v is not None]
    low, high = (min(found), max(found)) if log or min(found) < 0 else (0.0, max(found) or 1.0)
    if not log and low < 0:
        low, high = -max(-low, high), max(-low, high)
    stops = SIGNED if not log and low < 0 else AMOUNT
    ends = [low, (low + high) / 2, high]
    gap = 1 if len(axis.steps) <= _MARKED else 0
    figure.add_heatmap(
        x=[axis.at(step) for step in axis.steps],
        y=[places.names.get(place, str(place)).removeprefix("layer ") for place in sites],
        z=[[None if v is None else number(math.log10(v) if log else v) for v in line] for line in values],
        text=[["" if v is None else f"{v:.4g}" for v in line] for line in values] if log else None,
        hovertemplate=f"<b>%{{{'text' if log else 'z:.4g'}}}</b>  layer %{{y}}<br>step %{{customdata:,}}"
        "<extra></extra>",
        meta={"steps": list(axis.steps)},  # the page's script gives each cell its step
        hoverongaps=False,
        yaxis="y2",
        colorscale=[[i / (len(stops) - 1), pair[0]] for i, pair in enumerate(stops)],
        zmin=low,
        zmax=high if high > low else low + 1,
        xgap=gap,
        ygap=gap,
        colorbar={
            "thickness": 8, "outlinewidth": 0, "tickvals": ends, "x": 1.02, "xpad": 4, "ypad": 0,
            "ticktext": [short(10**end if log else end, 2) for end in ends],
            "y": _MAP[0], "yanchor": "bottom", "len": _MAP[1] - _MAP[0],
        },
    )  # fmt: skip
    names = [places.names.get(place, str(place)).removeprefix("layer ") for place in sites]
    shown = [names[i] for i in spaced(list(range(len(names))), 6)]
    figure.update_layout(
        yaxis={"domain": list(_LINES)},
        yaxis2={
            "domain": list(_MAP), "type": "category", "autorange": "reversed", "tickvals": shown,
            "ticktext": shown, "showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True,
            "automargin": True, "title": {"text": "layer", "standoff": 6},
        },
        xaxis={"anchor": "y2", "showline": False},
    )  # fmt: skip


def number(value: float, digits: int = 4) -> float | None:
    """As many digits as a figure shows; None for what is not there."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None
