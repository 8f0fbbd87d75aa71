"""The charts of this paper: a measure along training, and side by side at its end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from isoscope.measures.table import MEASURES
from isoscope.papers.intervals import over
from isoscope.papers.lines import curves, series
from isoscope.papers.machina2024.judging import pick
from isoscope.show.charts import Chart, Series

STEP, END = "step of training", "last checkpoint"
_BOUNDS = {each.name: each.bounds for each in MEASURES}


def drawn(*charts: Chart) -> list[Chart]:
    """The charts that have something to show."""
    return [chart for chart in charts if chart.series]


def over_steps(
    rows: pd.DataFrame, kinds: str | Iterable[str], measure: str, title: str, y: str = ""
) -> Chart:
    """A measure along training, a curve a model; step 0 has no place on the axis and is shown at 1/2."""
    own = pick(rows, kinds, measure, "all")
    own = own[own["step"].notna()]
    bounds = _BOUNDS.get(measure, (-math.inf, math.inf))
    lines = [_from_half(line) for line in curves(own, "step", bounds=bounds)]
    return Chart(title, STEP, y, lines, log_x=True, remark="step 0 at 1/2")


def with_null(chart: Chart, rows: pd.DataFrame, kinds: Iterable[str], measure: str) -> Chart:
    """The chart with what random directions would give: the mean over models of the nulls at each step."""
    own = pick(rows, kinds, measure, "all")
    nulls = own[own["step"].notna() & own["null"].notna()].groupby("step")["null"].mean()
    if nulls.empty:
        return chart
    x = [float(step) for step in nulls.index]
    line = _from_half(Series("random directions", x, nulls.tolist(), style="thin"))
    return replace(chart, series=[*chart.series, line])


def side_by_side(
    title: str, places: Mapping[str, pd.DataFrame], names: Sequence[str] | None = None,
    at: Sequence[tuple[float, str]] = ()
) -> Chart:  # fmt: skip
    """Rows of the last checkpoint, a series of dots a model: the mean over seeds with its interval."""
    models = names or list(dict.fromkeys(str(model) for own in places.values() for model in own["model"]))
    dots = []
    for model in models:
        found = {place: own[own["model"] == model]["value"].tolist() for place, own in places.items()}
        there = [place for place, values in found.items() if values]
        dots.append(series(model, there, [over(found[place]) for place in there], "dots"))
    return Chart(title, "", "", [each for each in dots if len(each.x)], levels=at, remark=END)


def _from_half(line: Series) -> Series:
    return replace(line, x=[0.5 if at == 0 else at for at in line.x])
