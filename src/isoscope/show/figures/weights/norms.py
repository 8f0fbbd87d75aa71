"""The final norm on the page: the cloud at each of its stages and under each edit, and γ and β themselves.

Stages are joined in the order in which the norm applies them; edits stand apart, after them, hollow.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, product

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import NULL, Axis, Chart, Series, Style
from isoscope.show.colours import MODELS, SOFT, Pair
from isoscope.show.figures.curves import from_zero, series_of
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import FAMILIES, Told, how_shown, in_order, title_of
from isoscope.show.readings import SiteReading, latest, models, read, unique
from isoscope.sites import parts

STAGES = {"norm_before": "before", "norm_standardised": "x̂", "norm_scaled": "γx̂", "norm_output": "γx̂ + β"}
"""Short, so that six of them fit under a small panel; x̂ is the standardised vector."""

EDITS = {"norm_without_bias": "β := 0", "norm_without_weight": "γ := 1"}
HEIGHT = 250


def stages(rows: pd.DataFrame, told: Told) -> tuple[Panel, ...]:
    """One panel per measure, the stages across, one colour per model; of several steps the last."""
    readings = read(rows[rows["head"].isna()])
    own = latest([r for r in readings if r.known and r.kind != "norm" and parts(r.kind)[0] == "norm"])
    colours = dict(zip(models(own), cycle(MODELS), strict=False))
    key, there = tuple(colours.items()) if len(colours) > 1 else (), {r.measure for r in own}
    shown = [m for m in FAMILIES["norm"].others if m in there and how_shown(m).beside not in there]
    charts = {m: _chart([r for r in own if r.measure == m], colours) for m in shown}
    return tuple(Panel((m,), title_of(m, told), "", chart, key) for m, chart in charts.items())


def _chart(own: Sequence[SiteReading], colours: Mapping[str, Pair]) -> Chart:
    kinds = unique(r.kind for r in own)
    ordered = [kind for kind in STAGES if kind in kinds]
    edits = [kind for kind in unique([*EDITS, *kinds]) if kind in kinds and kind not in STAGES]
    place = {kind: float(at) for at, kind in enumerate(ordered)}
    place |= {kind: len(ordered) + 0.5 + at for at, kind in enumerate(edits)}
    nulls = {place[r.kind]: r.null for r in own if math.isfinite(r.null)}
    series = [
        Series(NULL, [at - 0.3, at + 0.3], [null, null], colour=SOFT, dash="dash", width=1.5)
        for at, null in sorted(nulls.items())
    ]
    for (name, pair), group in product(colours.items(), (ordered, edits)):
        mine = sorted((r for r in own if r.model == name and r.kind in group), key=lambda r: place[r.kind])
        drawn = series_of(name, mine, [place[r.kind] for r in mine], pair)
        style: Style = "curve" if group is ordered else "dots"
        series += [replace(drawn, style=style, size=8, hollow=group is edits, opacity=1)] if mine else []
    labels = [(STAGES | EDITS).get(kind) or parts(kind)[1].replace("_", " ") for kind in place]
    wrapped = ["\n".join(textwrap.wrap(label, 9, break_long_words=False)) for label in labels]
    across = Axis(range=(-0.5, max(place.values()) + 0.5), ticks=[*zip(place.values(), wrapped, strict=True)])
    up = Axis(range=from_zero([v for r in own for v in (r.value, r.null, r.low, r.high)]))
    return Chart("", across, up, series, height=HEIGHT)


def weights(rows: pd.DataFrame, told: Told) -> list[tuple[str, str, str, str, str]]:
    """The norm's own numbers: model where there are several, measure, value, null, note."""
    own = latest([r for r in read(rows[rows["head"].isna()]) if r.kind == "norm" and r.known])
    names, ordered = models(own), in_order((r.measure for r in own), "norm")
    return [
        (r.model if len(names) > 1 else "", title_of(r.measure, told), short(r.value),
         short(r.null) if math.isfinite(r.null) else "", r.note)
        for r in sorted(own, key=lambda r: (names.index(r.model), ordered.index(r.measure)))
    ]  # fmt: skip
