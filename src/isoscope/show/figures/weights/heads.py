"""The weights of one head, picked by layer and head: its eigenvalues, ρ(t), and its measured attention.

Decided here: of a head that has more eigenvalues than fit on the page those of largest |λ| are shown. The
head shown first is the one that its weights localise most: of those in a regime that is decided, the one of
largest |tr W|/‖W‖.
"""

from __future__ import annotations

import math

import pandas as pd

from isoscope.show.figures.albums import (
    MOST,
    Album,
    Head,
    Line,
    by_head,
    called,
    fitting,
    known_of_heads,
    of_last_unit,
)
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.weights.propagation import LINES, OTHERS, THIS, eigenvalues, lines
from isoscope.show.readings import QUERY_KEY
from isoscope.show.regimes import UNDECIDED, regime_of

_HEADINGS = {
    "spectrum": "Eigenvalues of W",
    "predicted": "Where signal passes, predicted",
    "measured": "Where the last query attends",
}
_SERIES = {"spectrum": ["eigenvalue"], **{panel: list(lines) for panel, lines in LINES.items()}}


def heads(points: pd.DataFrame | None, rows: pd.DataFrame) -> Album[dict[str, Line]] | None:
    """The pictures there are of the weights of heads; None where there is none."""
    if points is None:
        return None
    own = points[points["picture"].isin(["spectrum", "propagation"]) & points["kind"].isin(QUERY_KEY)]
    own = own.dropna(subset=["layer", "head"])
    if own.empty:
        return None
    units = fitting(own, 4 * MOST)
    parts = by_head(_largest(own[own["unit"].isin(units)]), units)
    found = {head: {series: line for (_, series), line in lines.items()} for head, lines in parts.items()}
    there = {series for lines in found.values() for series in lines}
    panels = {name: _panel(name, there) for name, series in _SERIES.items() if there & set(series)}
    return Album(panels, called(units), found, _first(found, rows), _SERIES)


def _largest(points: pd.DataFrame) -> pd.DataFrame:
    """The points of known series, with as many eigenvalues of each head as fit, those of largest |λ|."""
    by = ["unit", "kind", "layer", "head"]
    most = max(1, MOST // max(1, points.groupby(by).ngroups))
    is_eigenvalue = points["series"] == "eigenvalue"
    size = (points["x"] ** 2 + points["y"] ** 2)[is_eigenvalue].sort_values(ascending=False, kind="stable")
    lines = points[points["series"].isin([one for panel in LINES.values() for one in panel])]
    return pd.concat([points.loc[size.index].groupby(by).head(most), lines])


def _panel(name: str, there: set[str]) -> Panel:
    if name == "spectrum":
        return Panel((), _HEADINGS[name], "", eigenvalues(), (THIS, OTHERS))
    key = tuple(line for series, line in LINES[name].items() if series in there)
    return Panel((), _HEADINGS[name], "", lines(name), key)


def _first(found: dict[Head, dict[str, Line]], rows: pd.DataFrame) -> Head:
    pull = {}
    for head, known in known_of_heads(rows, ("trace", "frobenius")).items():
        trace, scale = known.get("trace"), known.get("frobenius")
        if trace and scale and scale.value > 0:
            pull[head] = regime_of(trace) != UNDECIDED, abs(trace.value) / scale.value
    return max(of_last_unit(found), key=lambda head: pull.get(head[1:], (False, -math.inf)))
