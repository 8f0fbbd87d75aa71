"""The clouds of queries and keys of one head, picked by layer and head, on three kinds of axes side by side.

Decided here: the figures are empty forms, and the points of all heads travel beside them once, rounded to
three digits; `clouds.js` fills the forms with the head that is picked and says what is seen. The head shown
first is the one whose mean query and mean key are largest and most parallel. A page shows at most `MOST`
points: of more units, so many as fit, evenly, the first and the last among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import Axis, Chart, Label, Series, Told
from isoscope.show.colours import INK, MEASURES, Pair
from isoscope.show.figures.albums import MOST, Head, along, called, fitting, rounded
from isoscope.show.figures.panels import KINDS, Panel
from isoscope.show.packed import line
from isoscope.show.readings import ATTENTION, models, read

HEIGHT = 300
SERIES: dict[str, tuple[str, Pair, str]] = {
    "query": ("queries", MEASURES[0], "circle"),
    "key": ("keys", MEASURES[1], "diamond"),
}
"""What a series is called, its colour (as in the panels beside), and its mark."""

MARKS = {"circle": "M5 1a4 4 0 1 1 0 8a4 4 0 1 1 0-8z", "diamond": "M5 0l5 5l-5 5l-5-5z"}
"""The same marks as paths in a square of ten, for the key."""

ORIGIN = Series(
    "origin", [0], [0], style="dots", mark="cross-thin", size=13, colour=INK, edge=INK, opacity=1,
    pattern=Told("", "origin"), keyed=False,
)  # fmt: skip
"""A cross where the origin is."""

AXES = {"shared": "Shared axes", "centred": "Centred axes", "random": "Random axes"}
SiteHead = tuple[str, int, int]
"""The kind of site, layer and head."""

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
    panels = tuple(Panel((), heading, "", cloud()) for heading in AXES.values())
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


def cloud(points: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None) -> Chart:
    """Queries and keys of one head, then their means, then the origin; without points an empty form."""
    series = []
    for mean in (False, True):
        for name, (label, pair, symbol) in SERIES.items():
            x, y = (points or {}).get(name, ([0.0], [0.0]))
            if mean:
                x, y = ([_mean(each)] for each in (x, y))
            told = Told("", f"{'mean ' if mean else ''}{name}", ["{x:.3g}, {y:.3g}"])
            series.append(
                Series(
                    "their means" if mean else label, x, y, style="dots", colour=pair, mark=symbol,
                    pattern=told, size=13 if mean else 5, opacity=1 if mean else 0.7,
                    edge=INK if mean else None,
                )
            )  # fmt: skip
    return Chart(
        "", Axis(zero=True, most=5, line=False), Axis(zero=True, most=5, grid=False), [*series, ORIGIN],
        equal=True, height=HEIGHT, margin={"l": 40, "r": 8, "b": 28},
    )  # fmt: skip


def framed_cloud(own: pd.DataFrame) -> Chart:
    """The points of one head with the origin in the middle of both axes, which say how far they reach.

    What matters of a cloud is where it lies against its size, and vectors grow a hundredfold in training.
    """
    parts = {name: own[own["series"] == name] for name in SERIES}
    chart = cloud({name: (part["x"].tolist(), part["y"].tolist()) for name, part in parts.items()})
    values = own[["x", "y"]].to_numpy(float)
    far = 1.08 * float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    axis = Axis(range=(-far, far), ticks=(), zero=True)
    label = Label(None, -0.93 * far, f"±{short(far, 2)}")
    return replace(chart, x=axis, y=axis, labels=[label], series=chart.series[:-1])


def pulled(points: pd.DataFrame) -> list[SiteHead]:
    """Heads by how far their mean query and mean key lie from the origin, against how far points do."""
    found: dict[SiteHead, float] = {}
    for (kind, layer, head), own in points.groupby(["kind", "layer", "head"]):
        means = own.groupby("series")[["x", "y"]].mean()
        size = float((own[["x", "y"]] ** 2).sum(axis=1).mean()) or 1.0
        product = float(means.prod(axis=0).sum()) if len(means) == 2 else 0.0
        found[str(kind), int(str(layer)), int(str(head))] = abs(product) / size
    return sorted(found, key=lambda place: -found[place])


def _mean(values: Sequence[float]) -> float:
    there = [value for value in values if math.isfinite(value)]
    return sum(there) / len(there) if there else math.nan
