"""Heads along the steps of training: a line of cells a head, layer under layer, the colour its value.

Decided here: all heads stand in one map as far as `MOST_HEADS` go, so that a layer whose heads part ways is
seen beside one whose heads do not; of more, a list picks which layers are shown. Colours mean the same as in
the maps of `maps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import pandas as pd
import plotly.graph_objects as go

from isoscope.formatting import short
from isoscope.show.colours import AMOUNT, PAPER, SIGNED
from isoscope.show.draw.plotly.marks import blank
from isoscope.show.figures.maps import alike, bounds
from isoscope.show.figures.panels import KINDS, Panel, heading_of
from isoscope.show.figures.step_axis import StepAxis
from isoscope.show.figures.trajectories import number, spaced
from isoscope.show.measures import MAPS, Told, title_of

MOST_HEADS = 192
ALONG = {"queries": ("query_relative_drift", "key_relative_drift")}
"""Measures that are drawn along the steps beside those of `MAPS`."""
_AGAIN = {"drift in attention": ("sink_mass",)}  # shown with attention already
_CELL, _LEAST, _TALLEST = 9, 3, 460  # pixels: a head where there are few, where there are many, and all
_BELOW, _ABOVE = 44, 20

Cells = dict[tuple[int, int], list[float | None]]
"""Of each layer and head, its value at every step."""


@dataclass(frozen=True)
class HeadsOverSteps:
    """Groups of layers, what each is called, and the panels of each group."""

    groups: tuple[tuple[str, tuple[Panel, ...]], ...]

    @property
    def panels(self) -> list[Panel]:
        """Those of all groups."""
        return [panel for _, panels in self.groups for panel in panels]


def heads_over_steps(rows: pd.DataFrame, family: str, axis: StepAxis, told: Told) -> HeadsOverSteps | None:
    """The maps of a section; None without rows of heads."""
    asked = [m for m in (*MAPS.get(family, ()), *ALONG.get(family, ())) if m not in _AGAIN.get(family, ())]
    own = rows[rows["head"].notna() & rows["measure"].isin(asked) & rows["kind"].isin(list(KINDS))]
    own = own[own["value"].map(math.isfinite).astype(bool)]
    if own.empty:
        return None
    several = own["kind"].nunique() > 1
    layers = sorted({int(layer) for layer in own["layer"].dropna()})
    heads = int(own["head"].max()) + 1
    groups = _groups(layers, max(1, MOST_HEADS // heads))
    found = []
    for group in groups:
        panels = []
        for measure in asked:
            for kind in KINDS:
                mine = own[(own["measure"] == measure) & (own["kind"] == kind)]
                cells = _cells(mine[mine["layer"].isin(group)], axis)
                if cells:
                    title = heading_of(title_of(measure, told), "", kind if several else "")
                    low, high = bounds(measure, own.loc[own["measure"].isin(alike(measure)), "value"])
                    panels.append(Panel((measure,), title, "by head", _map(cells, axis, low, high)))
        name = str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}"
        found += [(name, tuple(panels))] if panels else []
    return HeadsOverSteps(tuple(found))


def _groups(layers: list[int], room: int) -> list[list[int]]:
    """Layers in groups of like size, as many as the room asks for.

    >>> _groups([1, 2, 3, 4, 5], 3)
    [[1, 2, 3], [4, 5]]
    """
    count = -(-len(layers) // room)
    size = -(-len(layers) // count)
    rest = iter(layers)
    return [list(islice(rest, size)) for _ in range(count)]


def _cells(own: pd.DataFrame, axis: StepAxis) -> Cells:
    at: dict[tuple[int, int], dict[int, float]] = {}
    for layer, head, step, value in zip(own["layer"], own["head"], own["step"], own["value"], strict=True):
        at.setdefault((int(layer), int(head)), {})[int(step)] = float(value)
    return {
        place: [number(values[step], 3) if step in values else None for step in axis.steps]
        for place, values in sorted(at.items())
    }


def _map(cells: Cells, axis: StepAxis, low: float, high: float) -> go.Figure:
    names = [f"layer {layer} head {head}" for layer, head in cells]
    size = max(_LEAST, min(_CELL, _TALLEST // len(names)))
    figure = blank(_ABOVE + _BELOW + max(120, size * len(names)))
    stops = SIGNED if low < 0 else AMOUNT
    ends = [low, (low + high) / 2, high]
    figure.add_heatmap(
        x=[axis.at(step) for step in axis.steps],
        y=names,
        z=list(cells.values()),
        hovertemplate="<b>%{z:.4g}</b>  %{y}<br>step %{customdata:,}<extra></extra>",
        meta={"steps": list(axis.steps)},  # the page's script gives each cell its step
        hoverongaps=False,
        colorscale=[[i / (len(stops) - 1), pair[0]] for i, pair in enumerate(stops)],
        zmin=low,
        zmax=high,
        colorbar={
            "thickness": 8, "outlinewidth": 0, "tickvals": ends, "x": 1.02, "xpad": 4, "ypad": 0,
            "ticktext": [short(end, 2) for end in ends],
        },
    )  # fmt: skip
    firsts = [
        i for i, (place, before) in enumerate(zip(cells, [None, *cells], strict=False)) if _new(place, before)
    ]
    for first in firsts[1:]:
        figure.add_shape(
            type="line", x0=0, x1=1, xref="paper", y0=first - 0.5, y1=first - 0.5, yref="y",
            line={"color": PAPER[0], "width": 2},
        )  # fmt: skip
    places = list(cells)
    middle = {
        first: (first + last - 1) // 2 for first, last in zip(firsts, [*firsts[1:], len(places)], strict=True)
    }
    shown = spaced(firsts, 12)
    ticks = axis.ticks()
    figure.update_layout(margin={"t": _ABOVE, "b": _BELOW, "r": 48})
    figure.update_xaxes(
        range=list(axis.range), title={"text": "step", "standoff": 6}, showline=False, tickangle=0,
        tickvals=[axis.at(step) for step in ticks], ticktext=[f"{step:,}" for step in ticks],
    )  # fmt: skip
    figure.update_yaxes(
        type="category", range=[len(names) - 0.5, -0.5], showgrid=False, ticks="",
        tickvals=[names[middle[first]] for first in shown],
        ticktext=[str(places[first][0]) for first in shown], title={"text": "layer", "standoff": 6},
    )  # fmt: skip
    return figure


def _new(place: tuple[int, int], before: tuple[int, int] | None) -> bool:
    return before is None or place[0] != before[0]
