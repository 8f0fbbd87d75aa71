"""The weights of one head, picked by layer and head: its eigenvalues, ρ(t), and its measured attention.

Decided here: of a head that has more eigenvalues than fit on the page those of largest |λ| are shown. The
head shown first is the one that its weights localise most: of those in a regime that is decided, the one of
largest |tr W|/‖W‖.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from isoscope.show.figures.albums import MOST, Head, along, called, fitting, rounded
from isoscope.show.figures.panels import KINDS, Panel
from isoscope.show.figures.weights.propagation import LINES, OTHERS, THIS, eigenvalues, lines
from isoscope.show.readings import QUERY_KEY, at_last, models, read
from isoscope.show.regimes import UNDECIDED, regime_of

Line = list[list[float | None]]
"""x and y of one series."""

_HEADINGS = {
    "spectrum": "Eigenvalues of W",
    "predicted": "Where signal passes, predicted",
    "measured": "Where the last query attends",
}
_SERIES = [("spectrum", "eigenvalue"), *((panel, one) for panel, group in LINES.items() for one in group)]


@dataclass(frozen=True)
class HeadAlbum:
    """Forms by name, the series of every head, what units and layers are called, and the head shown first."""

    panels: dict[str, Panel]
    units: tuple[str, ...]
    kinds: dict[str, str]
    heads: dict[Head, dict[str, Line]]
    first: Head

    @property
    def along(self) -> str:
        """What the units are: steps of training, or something else."""
        return along(self.units)

    def series(self, panel: str) -> list[str]:
        """The series of one panel, in the order of its form."""
        return [series for name, series in _SERIES if name == panel]

    def data(self) -> dict[str, object]:
        """What the page carries: a head is its name and its series by name."""
        return {
            "units": self.units,
            "kinds": self.kinds,
            "first": list(self.heads).index(self.first),
            "heads": [[*head, series] for head, series in self.heads.items()],
        }


def heads(points: pd.DataFrame | None, rows: pd.DataFrame) -> HeadAlbum | None:
    """The pictures there are of the weights of heads; None where there is none."""
    if points is None:
        return None
    own = points[points["picture"].isin(["spectrum", "propagation"]) & points["kind"].isin(QUERY_KEY)]
    own = own.dropna(subset=["layer", "head"])
    if own.empty:
        return None
    units = fitting(own, 4 * MOST)
    found = _heads(own[own["unit"].isin(units)], units)
    there = {series for each in found.values() for series in each}
    panels = {
        name: _panel(name, there) for name in _HEADINGS if any(s in there for p, s in _SERIES if p == name)
    }
    kinds = {kind: KINDS[kind] for kind in QUERY_KEY if any(head[1] == kind for head in found)}
    return HeadAlbum(panels, called(units), kinds if len(kinds) > 1 else {}, found, _first(found, rows))


def _heads(points: pd.DataFrame, units: list[str]) -> dict[Head, dict[str, Line]]:
    number = max(1, points.groupby(["unit", "kind", "layer", "head"]).ngroups)
    found: dict[Head, dict[str, Line]] = {}
    known = [series for _, series in _SERIES]
    for (unit, kind, layer, head, series), own in points.groupby(
        ["unit", "kind", "layer", "head", "series"], sort=False
    ):
        if series not in known:
            continue
        at = units.index(str(unit)), str(kind), int(str(layer)), int(str(head))
        if series == "eigenvalue":
            size = (own["x"] ** 2 + own["y"] ** 2).sort_values(ascending=False, kind="stable")
            own = own.loc[size.index[: max(1, MOST // number)]]
        found.setdefault(at, {})[str(series)] = [list(map(rounded, own[axis])) for axis in ("x", "y")]
    return dict(
        sorted(found.items(), key=lambda item: (item[0][0], QUERY_KEY.index(item[0][1]), *item[0][2:]))
    )


def _panel(name: str, there: set[str]) -> Panel:
    if name == "spectrum":
        return Panel((), _HEADINGS[name], "", eigenvalues(), (THIS, OTHERS))
    key = tuple(line for series, line in LINES[name].items() if series in there)
    return Panel((), _HEADINGS[name], "", lines(name), key)


def _first(found: dict[Head, dict[str, Line]], rows: pd.DataFrame) -> Head:
    last = [head for head in found if head[0] == max(unit for unit, *_ in found)]
    readings = read(rows[rows["head"].notna() & rows["measure"].isin(["trace", "frobenius"])])
    readings = at_last([r for r in readings if r.known])
    if len(models(readings)) != 1:  # which of them the last unit is of is not told
        return last[0]
    scales = {(r.kind, r.layer, r.head): r.value for r in readings if r.measure == "frobenius"}
    pull = {
        (r.kind, r.layer, r.head): (regime_of(r) != UNDECIDED, abs(r.value) / scale)
        for r in readings
        if r.measure == "trace" and (scale := scales.get((r.kind, r.layer, r.head), 0.0)) > 0
    }
    return max(last, key=lambda head: pull.get(head[1:], (False, -math.inf)))
