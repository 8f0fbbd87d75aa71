"""The clouds of queries and keys of one head, on three kinds of axes; the head that drifts most is first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import Axis, Chart, Hover, Label, Series
from isoscope.show.colours import INK, MEASURES, Pair
from isoscope.show.figures import albums
from isoscope.show.figures.albums import Album, Head, Line, of_last_unit
from isoscope.show.figures.panels import Panel
from isoscope.show.figures.step_axis import spaced
from isoscope.show.readings import ATTENTION

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
    pattern=Hover("", "origin"), keyed=False,
)  # fmt: skip
"""A cross where the origin is."""

AXES = {"shared": "Shared axes", "centred": "Centred axes", "random": "Random axes"}
_HEADS, _STEPS = 4, 4  # of a printed figure of several steps
_PULLED = ("query_key_cosine", "query_relative_drift", "key_relative_drift")


def album(points: pd.DataFrame | None, rows: pd.DataFrame | None = None) -> Album[list[Line]] | None:
    """The pictures there are of queries and keys; None where there is none."""
    if points is None:
        return None
    own = points[points["picture"].isin(list(AXES)) & points["kind"].isin(ATTENTION) & points["head"].notna()]
    units = albums.fitting(own, albums.MOST)
    wanted = [[(how, series) for series in (*SERIES, "share")] for how in AXES]
    heads = {
        head: [[axis for part in panel for axis in lines[part]] for panel in wanted]
        for head, lines in albums.by_head(own, units).items()
        if all(part in lines for panel in wanted for part in panel)
    }
    panels = {how: Panel((), heading, "", cloud()) for how, heading in AXES.items()}
    return Album(panels, albums.called(units), heads, _first(heads, rows)) if heads else None


def _first(heads: dict[Head, list[Line]], rows: pd.DataFrame | None) -> Head:
    """Of the last unit, the head of the largest |q̄·k̄|/(mean ‖q‖ · mean ‖k‖): by rows, else by the points."""
    last, known = of_last_unit(heads), albums.known_of_heads(rows, _PULLED)
    pull = {
        head: math.prod(abs(r.value) for r in measures.values())
        for head, measures in known.items()
        if len(measures) == len(_PULLED)
    }
    if any(head[1:] in pull for head in last):
        return max(last, key=lambda head: pull.get(head[1:], 0.0))
    return max(last, key=lambda head: _pull(*heads[head][0][:4]))


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
                there = ([value for value in each if math.isfinite(value)] for each in (x, y))
                x, y = ([sum(values) / len(values) if values else math.nan] for values in there)
            told = Hover("", f"{'mean ' if mean else ''}{name}", ["{x:.3g}, {y:.3g}"])
            dots = Series(label, x, y, style="dots", colour=pair, mark=symbol, pattern=told)
            large = replace(dots, name="their means", size=13, opacity=1, edge=INK)
            series.append(large if mean else replace(dots, size=5, opacity=0.7))
    return Chart(
        "", Axis(zero=True, most=5, line=False), Axis(zero=True, most=5, grid=False), [*series, ORIGIN],
        equal=True, height=HEIGHT, margin={"l": 40, "r": 8, "b": 28},
    )  # fmt: skip


def framed_cloud(lines: Sequence[Sequence[float | None]]) -> Chart:
    """The points of one panel of an album, the origin in the middle of axes that say how far they reach."""
    qx, qy, kx, ky = ([math.nan if v is None else v for v in line] for line in lines[:4])
    chart = cloud({"query": (qx, qy), "key": (kx, ky)})
    there = [abs(v) for v in (*qx, *qy, *kx, *ky) if math.isfinite(v)]
    far = 1.08 * max(there, default=0.0) or 1.0
    axis = Axis(range=(-far, far), ticks=(), zero=True)
    label = Label(None, -0.93 * far, f"±{short(far, 2)}")
    return replace(chart, x=axis, y=axis, labels=[label], series=chart.series[:-1])


def printed_clouds(of: Album[list[Line]]) -> tuple[list[Chart], int]:
    """Heads on shared axes, those furthest out first; of several steps a table of so many columns."""
    heads = sorted(of_last_unit(of.heads), key=lambda head: -_pull(*of.heads[head][0][:4]))
    if of.along != "step" or len(of.units) < 2:
        return [framed_cloud(of.heads[at][0]).named(f"layer {at[2]} head {at[3]}") for at in heads], 0
    units, charts = spaced(range(len(of.units)), _STEPS), []
    always = [at for at in heads if all((unit, *at[1:]) in of.heads for unit in units)]
    for row, (_, kind, layer, number) in enumerate(sorted(always[:_HEADS])):
        for unit in units:
            chart = framed_cloud(of.heads[unit, kind, layer, number][0])
            title = "" if row else f"step {int(of.units[unit]):,}"
            charts.append(chart.named(title, f"layer {layer}\nhead {number}" if unit == units[0] else ""))
    return charts, len(units)
