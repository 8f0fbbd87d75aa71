"""The clouds of queries and keys of one head, picked by layer and head, on three kinds of axes side by side.

Decided here: the figures are empty forms, and the points of all heads travel beside them once, rounded to
three digits; `clouds.js` fills the forms with the head that is picked and says what is seen. The head shown
first is the one whose mean query and mean key are largest and most parallel. A page shows at most `MOST`
points: of more units, so many as fit, evenly, the first and the last among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from isoscope.show.colours import GRID, INK, MEASURES, Pair
from isoscope.show.draw.plotly.marks import blank
from isoscope.show.draw.plotly.packed import line
from isoscope.show.figures.albums import MOST, Head, along, called, fitting, rounded
from isoscope.show.figures.panels import KINDS, Panel
from isoscope.show.readings import ATTENTION, models, read

HEIGHT = 300
SERIES: dict[str, tuple[str, Pair, str]] = {
    "query": ("queries", MEASURES[0], "circle"),
    "key": ("keys", MEASURES[1], "diamond"),
}
"""What a series is called, its colour (as in the panels beside), and its mark."""

MARKS = {"circle": "M5 1a4 4 0 1 1 0 8a4 4 0 1 1 0-8z", "diamond": "M5 0l5 5l-5 5l-5-5z"}
"""The same marks as paths in a square of ten, for the key."""

AXES = {"shared": "Shared axes", "centred": "Centred axes", "random": "Random axes"}
_OF = ("unit", "kind", "layer", "head")
_PULLED = ("query_key_cosine", "query_relative_drift", "key_relative_drift")


@dataclass(frozen=True)
class Album:
    """Three forms, the points of every head, what units and layers are called, and the head shown first."""

    panels: tuple[Panel, ...]
    units: tuple[str, ...]
    kinds: dict[str, str]
    heads: dict[Head, list[list[list[float | None]]]]
    first: Head

    @property
    def along(self) -> str:
        """What the units are: steps of training, or something else."""
        return along(self.units)

    @property
    def colours(self) -> tuple[Pair, ...]:
        """The colours of the two series."""
        return tuple(pair for _, pair, _ in SERIES.values())

    def data(self) -> dict[str, object]:
        """What the page carries: a head is its name and, for each panel, x and y of each series."""
        return {
            "units": self.units,
            "kinds": self.kinds,
            "first": list(self.heads).index(self.first),
            "heads": [
                [*head, [[line(axis) for axis in panel] for panel in panels]]
                for head, panels in self.heads.items()
            ],
        }


def album(points: pd.DataFrame | None, rows: pd.DataFrame) -> Album | None:
    """The pictures there are of queries and keys; None where there is none."""
    if points is None:
        return None
    own = points[points["picture"].isin(list(AXES)) & points["kind"].isin(ATTENTION)].dropna(subset=["head"])
    units = fitting(own, MOST)
    own = own[own["unit"].isin(units)]
    found = _heads(own, units)
    if not found:
        return None
    kinds = {kind: KINDS[kind] for kind in ATTENTION if any(head[1] == kind for head in found)}
    panels = tuple(Panel((), heading, "", _form()) for heading in AXES.values())
    return Album(panels, called(units), kinds if len(kinds) > 1 else {}, found, _first(found, rows))


def _heads(points: pd.DataFrame, units: list[str]) -> dict[Head, list[list[list[float | None]]]]:
    """Of each head, in order, for every kind of axes: x and y of queries, of keys, and the two shares."""
    parts: dict[Head, dict[tuple[str, str], list[list[float | None]]]] = {}
    for (unit, kind, layer, head, picture, series), own in points.groupby(
        [*_OF, "picture", "series"], sort=False
    ):
        at = units.index(str(unit)), str(kind), int(str(layer)), int(str(head))
        parts.setdefault(at, {})[str(picture), str(series)] = [
            list(map(rounded, own[axis])) for axis in ("x", "y")
        ]
    wanted = [[(how, series) for series in (*SERIES, "share")] for how in AXES]
    return {
        head: [[line for part in panel for line in there[part]] for panel in wanted]
        for head, there in sorted(parts.items(), key=lambda item: _order(item[0]))
        if all(part in there for panel in wanted for part in panel)
    }


def _order(head: Head) -> tuple[int, int, int, int]:
    unit, kind, layer, number = head
    return unit, ATTENTION.index(kind), layer, number


def _first(found: dict[Head, list[list[list[float | None]]]], rows: pd.DataFrame) -> Head:
    """Of the last unit, the head of the largest |q̄·k̄|/(mean ‖q‖ · mean ‖k‖): by rows, else by the points."""
    last = [head for head in found if head[0] == max(unit for unit, *_ in found)]
    told = _told(rows)
    if any(head[1:] in told for head in last):
        return max(last, key=lambda head: told.get(head[1:], 0.0))
    return max(last, key=lambda head: _pull(*found[head][0][:4]))


def _told(rows: pd.DataFrame) -> dict[tuple[str, int, int], float]:
    readings = read(rows[rows["head"].notna() & rows["measure"].isin(_PULLED)])
    if len(models(readings)) > 1:  # which of them the last unit is of is not told
        return {}
    last = max((r.step for r in readings if r.step is not None), default=None)
    values: dict[tuple[str, int, int], dict[str, float]] = {}
    for r in readings:
        if r.step == last and r.known and r.layer is not None and r.head is not None:
            values.setdefault((r.kind, r.layer, r.head), {})[r.measure] = abs(r.value)
    return {at: math.prod(each.values()) for at, each in values.items() if len(each) == len(_PULLED)}


def _pull(*lines: list[float | None]) -> float:
    qx, qy, kx, ky = ([x or 0.0 for x in line] for line in lines)
    product = (sum(qx) * sum(kx) + sum(qy) * sum(ky)) / (len(qx) * len(kx))
    lengths = [sum(map(math.hypot, x, y)) / len(x) for x, y in ((qx, qy), (kx, ky))]
    return abs(product) / (math.prod(lengths) or math.inf)


def _form() -> go.Figure:
    """A panel without points: of each series its cloud, then its mean, then the origin."""
    figure = blank(HEIGHT)
    for mean in (False, True):
        for name, (_, (colour, _), symbol) in SERIES.items():
            edge = {"width": 2, "color": INK[0]} if mean else {"width": 0}
            figure.add_scatter(
                x=[0],
                y=[0],
                mode="markers",
                marker={"size": 13 if mean else 5, "color": colour, "symbol": symbol, "line": edge},
                opacity=1 if mean else 0.7,
                hovertemplate=f"{'mean ' if mean else ''}{name}<br>%{{x:.3g}}, %{{y:.3g}}<extra></extra>",
            )
    figure.add_scatter(
        x=[0],
        y=[0],
        mode="markers",
        marker={"size": 13, "symbol": "cross-thin", "line": {"width": 2, "color": INK[0]}},
        hovertemplate="origin<extra></extra>",
    )
    figure.update_layout(margin={"l": 40, "r": 8, "t": 8, "b": 28})
    both = {"showgrid": False, "zeroline": True, "zerolinecolor": GRID[0], "nticks": 5, "tickangle": 0}
    figure.update_xaxes(showline=False, **both)
    figure.update_yaxes(scaleanchor="x", scaleratio=1, **both)
    return figure
