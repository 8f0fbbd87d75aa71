"""The weights of one head, picked by layer and head: its eigenvalues, ρ(t), and its measured attention.

Predicted ρ is a probability and attention is in units of an even one, so they never share an axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from isoscope.show.charts import Axis, Chart, Hover, Series
from isoscope.show.colours import MEASURES, MODELS, SOFT, Pair
from isoscope.show.figures import albums
from isoscope.show.figures.albums import MOST, Album, Head, Line
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import spaced
from isoscope.show.readings import QUERY_KEY
from isoscope.show.regimes import UNDECIDED, regime_of

HEIGHT = 300
_PRINTED = 6  # heads of a printed figure
THIS, OTHERS = ("this head", MODELS[0]), ("the layer’s other heads", SOFT)
LINES: dict[str, dict[str, tuple[str, Pair]]] = {
    "predicted": {"predicted": ("W of this head", MODELS[0]), "random": ("random W", SOFT)},
    "measured": {"measured": ("measured", MEASURES[0]), "softmax": ("of a walk through W", MEASURES[2])},
}
"""The two panels of lines, and the series of each with its label and colour."""

_MARGIN = {"l": 48, "r": 8, "t": 8, "b": 40}
_DASHES = {"random": "dash", "softmax": "dot"}
Given = Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]]  # x and y of each series
_FORM = ([0.0], [0.0])
_HEADINGS = {
    "spectrum": "Eigenvalues of W", "predicted": "Where signal passes, predicted",
    "measured": "Where the last query attends",
}  # fmt: skip
_SERIES = {"spectrum": ["eigenvalue"], **{panel: list(lines) for panel, lines in LINES.items()}}


def eigenvalues(points: Given | None = None) -> Chart:
    """The eigenvalues of the layer's other heads, then those of the chosen one; equal scales."""
    series = [
        Series(name, *(points or {}).get(name, _FORM), style="dots", size=size, colour=pair, opacity=opacity,
               pattern=Hover("", name, ["{x:.3g}, {y:.3g} i"]))
        for (name, pair), size, opacity in ((OTHERS, 3, 0.5), (THIS, 6, 0.9))
    ]  # fmt: skip
    up = Axis("imaginary part", zero=True, most=5, grid=False)
    across = Axis("real part", zero=True, most=5, line=False)
    return Chart("", across, up, series, equal=True, height=HEIGHT, margin=_MARGIN)


def lines(panel: str, points: Given | None = None) -> Chart:
    """One line a series along the keys, even attention at 1; without points a form that a script fills."""
    series = [
        Series(name, *(points or {}).get(one, _FORM), colour=pair, dash=_DASHES.get(one, "solid"),
               pattern=Hover("", f"{name}: {{y:.3g}}", ["at {x:.2f}"]))
        for one, (name, pair) in LINES[panel].items() if points is None or one in points
    ]  # fmt: skip
    up = Axis("ρ, chance to pass", range=(0, 1.04))
    if panel == "measured":
        up = Axis("attention, even = 1", floor=True)
        series.append(Series("even", [0, 1], [1, 1], colour=SOFT, dash="dash", width=1.5))
    across = Axis("place of the key, t/T", range=(0, 1), most=5)
    return Chart("", across, up, series, height=HEIGHT, margin=_MARGIN)


def heads(points: pd.DataFrame | None, rows: pd.DataFrame | None = None) -> Album[dict[str, Line]] | None:
    """The pictures there are of the weights of heads; None where there is none."""
    if points is None:
        return None
    own = points[points["picture"].isin(["spectrum", "propagation"]) & points["kind"].isin(QUERY_KEY)]
    own = own.dropna(subset=["layer", "head"])
    if own.empty:
        return None
    units = albums.fitting(own, 4 * MOST)
    parts = albums.by_head(_largest(own[own["unit"].isin(units)]), units)
    found = {head: {series: line for (_, series), line in lines.items()} for head, lines in parts.items()}
    there = {series for lines in found.values() for series in lines}
    panels: dict[str, Panel] = {}
    for name, series in _SERIES.items():
        key = tuple(line for one, line in LINES.get(name, {}).items() if one in there) or (THIS, OTHERS)
        chart = eigenvalues() if name == "spectrum" else lines(name)
        panels |= {name: Panel((), _HEADINGS[name], "", chart, key)} if there & set(series) else {}
    pull = {}
    for head, known in albums.known_of_heads(rows, ("trace", "frobenius")).items():
        trace, scale = known.get("trace"), known.get("frobenius")
        if trace and scale and scale.value > 0:
            pull[head] = regime_of(trace) != UNDECIDED, abs(trace.value) / scale.value
    last = albums.of_last_unit(found)
    first = max(last, key=lambda head: pull.get(head[1:], (False, -math.inf)))
    return Album(panels, albums.called(units), found, first, _SERIES)


def picture(of: Album[dict[str, Line]], at: Head, panel: str) -> Chart:
    """One panel of the pictures of a head, with its points in it."""
    own = {name: (line[0], line[1]) for name, line in of.heads[at].items()}
    if panel == "spectrum":
        others = [of.heads[one] for one in of.heads if one[:3] == at[:3] and one != at]
        beside = [line["eigenvalue"] for line in others if "eigenvalue" in line]
        around = [v for line in beside for v in line[0]], [v for line in beside for v in line[1]]
        chart = eigenvalues({THIS[0]: own.get("eigenvalue", _FORM), OTHERS[0]: around})
    else:
        chart = lines(panel, {name: line for name, line in own.items() if name in LINES[panel]})
    return chart.named(f"layer {at[2]} head {at[3]}")


def printed_heads(of: Album[dict[str, Line]], panel: str) -> list[Chart]:
    """One panel of a few heads of the last unit."""
    few = spaced(albums.of_last_unit(of.heads), _PRINTED)
    return [picture(of, at, panel) for at in few] if panel in of.panels else []


def _largest(points: pd.DataFrame) -> pd.DataFrame:
    """The points of known series, with as many eigenvalues of each head as fit, those of largest |λ|."""
    by = ["unit", "kind", "layer", "head"]
    most = max(1, MOST // max(1, points.groupby(by).ngroups))
    is_eigenvalue = points["series"] == "eigenvalue"
    size = (points["x"] ** 2 + points["y"] ** 2)[is_eigenvalue].sort_values(ascending=False, kind="stable")
    lines = points[points["series"].isin([one for panel in LINES.values() for one in panel])]
    return pd.concat([points.loc[size.index].groupby(by).head(most), lines])
