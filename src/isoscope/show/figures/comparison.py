"""The two figures of a comparison: mean cosine against drift, one dot a layer, one colour a model.

With equal norms the mean cosine is the square of the relative drift, which is the dashed curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from isoscope.show.charts import Axis, Chart, Hover, Series, turned
from isoscope.show.colours import SOFT, Pair
from isoscope.show.figures.curves import from_zero, series_of
from isoscope.show.figures.panels import Drawn, Panel, palette
from isoscope.show.readings import PLACES, SiteReading, read

HEIGHT = 320
LEAST_DECADES = 0.7  # a logarithmic axis shows at least so much, so that it has ticks
ACROSS = {"relative_drift": "relative drift", "drift": "drift"}
UP = "mean_cosine"


Dot = tuple[SiteReading, SiteReading]
"""One layer of one model: how far it drifts, and how alike its vectors point."""


def scatter(rows: pd.DataFrame) -> Drawn:
    """Mean cosine against relative drift, and against drift; without panels where either is not there."""
    readings = [r for r in read(rows) if r.head is None]
    colours = palette(readings)
    sited = [r for r in readings if r.kind in PLACES and r.known]
    up = {(r.model, r.step, r.site): r for r in sited if r.measure == UP}
    panels = []
    for across, label in ACROSS.items():
        pairs = [(r, up.get((r.model, r.step, r.site))) for r in sited if r.measure == across]
        dots = [(r, y) for r, y in pairs if y is not None and (r.value > 0 or across != "drift")]
        if dots:
            remark = "log scale" if across == "drift" else "dashed: its square"
            remark += ", hollow: layer 0" if any(map(_begins, dots)) else ""
            chart = _against(dots, across, colours)
            panels.append(Panel((across, UP), f"Mean cosine against {label}", remark, chart))
    return Drawn(tuple(panels), tuple(colours.items()))


def _begins(dot: Dot) -> bool:
    return dot[0].kind == "layer" and dot[0].layer == 0


def _against(dots: Sequence[Dot], across: str, colours: Mapping[str, Pair]) -> Chart:
    log, label = across == "drift", ACROSS[across]
    left, right = _span([x.value for x, _ in dots], log)
    line = [right * i / 60 for i in range(61)]
    square = Series("relative drift squared", line, [v * v for v in line], colour=SOFT, dash="dash")
    series = [] if log else [replace(square, width=1.5)]
    for at, (name, pair) in enumerate(colours.items()):
        own = sorted((dot for dot in dots if dot[0].model == name), key=lambda dot: dot[0].place)
        curve = series_of(name, [cosine for _, cosine in own], [drift.value for drift, _ in own], pair)
        told = [
            Hover(f"mean cosine {y.value:.6g}", "", [f"{label} {r.value:.6g}", f"{r.site} of {name}"])
            for r, y in own
        ]
        look = replace(curve, width=1, size=8, edge=pair, mark=turned(at)[1], hollow=[*map(_begins, own)])
        series.append(replace(look, told=told))
    up = Axis("mean cosine", range=_span([y.value for _, y in dots], False))
    return Chart("", Axis(label, range=(left, right), log=log, most=6), up, series, height=HEIGHT)


def _span(values: list[float], log: bool) -> tuple[float, float]:
    """The ends of an axis: around 0 where it is linear, in powers of ten where not."""
    if not log:
        return from_zero(values)
    low, high = math.log10(min(values)), math.log10(max(values))
    room = max(0.06 * (high - low), (LEAST_DECADES - (high - low)) / 2)
    return low - room, high + room
