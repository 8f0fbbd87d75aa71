"""The final norm on the page: the cloud at each of its stages and under each edit, and γ and β themselves.

Stages stand on the axis in the order in which the norm applies them and are joined; edits stand apart, after
them, hollow, since nothing passes from one to the next. Without data there are only the weights: a table.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle

import pandas as pd

from isoscope.formatting import short
from isoscope.show.charts import NULL, Axis, Chart, Series
from isoscope.show.colours import MODELS, SOFT, Pair
from isoscope.show.figures.curves import telling
from isoscope.show.figures.panels import Panel
from isoscope.show.measures import FAMILIES, Told, title_of
from isoscope.show.readings import SiteReading, at_last, models, read, unique

STAGES = {
    "norm_before": "before",
    "norm_standardised": "x̂",
    "norm_scaled": "γx̂",
    "norm_output": "γx̂ + β",
}
"""Short, so that six of them fit under a small panel; x̂ is the standardised vector."""

EDITS = {"norm_without_bias": "β := 0", "norm_without_weight": "γ := 1"}
SHOWN = (
    "mean_cosine_between",
    "relative_drift",
    "isoscore",
    "mean_cosine",
    "partition_isotropy_unit",
    "mean_norm",
)
"""The measures that are drawn along the stages, the mean cosine of all pairs only where the other is not."""

HEIGHT = 250


def is_norm(kind: str) -> bool:
    """Whether this kind of site is the norm, one of its stages or an edit of it."""
    return kind == "norm" or kind.startswith("norm_")


def stages(rows: pd.DataFrame, told: Told) -> tuple[Panel, ...]:
    """One panel a measure, the stages across, one colour a model; of several steps the last."""
    readings = read(rows[rows["head"].isna() & rows["kind"].str.startswith("norm_")])
    readings = [r for r in readings if r.known]
    colours = palette(readings)
    own = [r for name in colours for r in at_last([one for one in readings if one.model == name])]
    named = [measure for measure in SHOWN if any(r.measure == measure for r in own)]
    named = [m for m in named if m != "mean_cosine" or "mean_cosine_between" not in named]
    key = tuple(colours.items()) if len(colours) > 1 else ()
    return tuple(
        Panel(
            (measure,),
            title_of(measure, told),
            "",
            _panel([r for r in own if r.measure == measure], colours),
            key,
        )
        for measure in named
    )


def palette(readings: list[SiteReading]) -> dict[str, Pair]:
    """The colour of every model whose norm was taken apart."""
    return dict(zip(models(readings), cycle(MODELS), strict=False))


def label(kind: str) -> str:
    """What a stage or an edit is called on the axis; an edit that is not known, by its own name."""
    return (STAGES | EDITS).get(kind) or kind.removeprefix("norm_").replace("_", " ")


def _panel(own: Sequence[SiteReading], colours: Mapping[str, Pair]) -> Chart:
    kinds = unique(r.kind for r in own)
    ordered = [kind for kind in STAGES if kind in kinds]
    edits = [kind for kind in EDITS if kind in kinds] + [k for k in kinds if k not in {**STAGES, **EDITS}]
    place = {kind: float(at) for at, kind in enumerate(ordered)}
    place |= {kind: len(ordered) + 0.5 + at for at, kind in enumerate(edits)}
    nulls = {place[r.kind]: r.null for r in own if math.isfinite(r.null)}
    series = [
        Series(NULL, [at - 0.3, at + 0.3], [null, null], colour=SOFT, dash="dash", width=1.5)
        for at, null in sorted(nulls.items())
    ]
    for name, pair in colours.items():
        for group in (ordered, edits):
            mine = sorted(
                (r for r in own if r.model == name and r.kind in group), key=lambda r: place[r.kind]
            )
            if mine:
                series.append(
                    Series(
                        name, [place[r.kind] for r in mine], [r.value for r in mine], [r.low for r in mine],
                        [r.high for r in mine], "curve" if group is ordered else "dots", colour=pair, size=8,
                        hollow=group is edits, opacity=1, told=[telling(r) for r in mine],
                    )
                )  # fmt: skip
    shown = [v for r in own for v in (r.value, r.null, r.low, r.high) if math.isfinite(v)]
    low, high = min(0.0, *shown), max(0.0, *shown)
    room = 0.06 * ((high - low) or 1.0)
    wrapped = ["\n".join(textwrap.wrap(label(kind), 9, break_long_words=False)) for kind in place]
    across = Axis(range=(-0.5, max(place.values()) + 0.5), ticks=[*zip(place.values(), wrapped, strict=True)])
    up = Axis(range=(low - (room if low < 0 else 0.0), high + room))
    return Chart("", across, up, series, height=HEIGHT)


def weights(rows: pd.DataFrame, told: Told) -> list[tuple[str, str, str, str, str]]:
    """The norm's own numbers: model where there are several, measure, value, null, note."""
    readings = [r for r in read(rows[rows["head"].isna()]) if r.kind == "norm" and r.known]
    several = len(models(readings)) > 1
    order = {measure: at for at, measure in enumerate(FAMILIES["norm"].measures)}
    lines = []
    for name in models(readings):
        own = at_last([r for r in readings if r.model == name])
        for r in sorted(own, key=lambda r: order.get(r.measure, len(order))):
            null = short(r.null) if math.isfinite(r.null) else ""
            lines.append((name if several else "", title_of(r.measure, told), short(r.value), null, r.note))
    return lines
