"""The two figures of a comparison: mean cosine against drift, one dot a layer, one colour a model.

Each model's layers are joined in order by a thin line, its layer 0 is hollow. In the panel of the
relative drift the dashed curve is its square: when all norms are equal the mean cosine lies on it,
whatever the model, so what the panel shows is how far models leave the curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from isoscope.show.charts import Axis, Chart, Series, Told, turned
from isoscope.show.colours import SOFT, Pair
from isoscope.show.figures.curves import from_zero
from isoscope.show.figures.panels import Drawn, Panel, palette
from isoscope.show.readings import PLACES, SiteReading, read

HEIGHT = 320
LEAST_DECADES = 0.7
"""A logarithmic axis shows at least so much, so that it has ticks."""

ACROSS = {"relative_drift": "relative drift", "drift": "drift"}
UP = "mean_cosine"


class Dot(NamedTuple):
    """One layer of one model: how far it drifts, and how alike its vectors point."""

    x: SiteReading
    y: SiteReading

    @property
    def begins(self) -> bool:
        """Whether it is of layer 0."""
        return self.x.kind == "layer" and self.x.layer == 0


def scatter(rows: pd.DataFrame) -> Drawn:
    """Mean cosine against relative drift, and against drift; without panels where either is not there."""
    readings = [r for r in read(rows) if r.head is None]
    colours = palette(readings)
    sited = [r for r in readings if r.kind in PLACES and r.known]
    panels = []
    for across, label in ACROSS.items():
        groups = dots_against(sited, across, colours)
        if any(groups.values()):
            remark = "log scale" if across == "drift" else "dashed: its square"
            remark += ", hollow: layer 0" if any(dot.begins for own in groups.values() for dot in own) else ""
            chart = against_drift(groups, across, colours)
            panels.append(Panel((across, UP), f"Mean cosine against {label}", remark, chart))
    return Drawn(tuple(panels), tuple(colours.items()))


def dots_against(readings: Iterable[SiteReading], across: str, names: Iterable[str]) -> dict[str, list[Dot]]:
    """The layers of each of these models that have both measures; drift has a logarithmic axis."""
    known = list(readings)
    up = {(r.model, r.step, r.site): r for r in known if r.measure == UP}
    pairs = [(r, up.get((r.model, r.step, r.site))) for r in known if r.measure == across]
    dots = [Dot(r, y) for r, y in pairs if y is not None and (r.value > 0 or across != "drift")]
    return {name: [dot for dot in dots if dot.x.model == name] for name in names}


def against_drift(groups: Mapping[str, Sequence[Dot]], across: str, colours: Mapping[str, Pair]) -> Chart:
    """The mean cosine of every layer against its drift, or another measure, a series per model."""
    log, label = across == "drift", ACROSS.get(across, across.replace("_", " "))
    dots = [dot for group in groups.values() for dot in group]
    left, right = _span([dot.x.value for dot in dots], log)
    series = []
    if across == "relative_drift":
        x = [right * i / 60 for i in range(61)]
        square = Series("relative drift squared", x, [v * v for v in x], colour=SOFT, dash="dash", width=1.5)
        series.append(square)
    for at, (name, group) in enumerate(groups.items()):
        own = sorted(group, key=lambda dot: dot.x.place)
        series.append(
            Series(
                name, [dot.x.value for dot in own], [dot.y.value for dot in own], [dot.y.low for dot in own],
                [dot.y.high for dot in own], style="curve", width=1,
                size=8, colour=colours[name], mark=turned(at)[1], hollow=[dot.begins for dot in own],
                told=[_told(dot, label) for dot in own], edge=colours[name],
            )
        )  # fmt: skip
    up = Axis("mean cosine", range=_span([dot.y.value for dot in dots], False))
    return Chart("", Axis(label, range=(left, right), log=log, most=6), up, series, height=HEIGHT)


def _span(values: list[float], log: bool) -> tuple[float, float]:
    """The ends of an axis: around 0 where it is linear, in powers of ten where not."""
    if not log:
        return from_zero(values)
    low, high = math.log10(min(values)), math.log10(max(values))
    room = max(0.06 * (high - low), (LEAST_DECADES - (high - low)) / 2)
    return low - room, high + room


def _told(dot: Dot, label: str) -> Told:
    lines = [f"{label} {dot.x.value:.6g}", f"{dot.x.site} of {dot.x.model}"]
    return Told(f"mean cosine {dot.y.value:.6g}", "", lines)
