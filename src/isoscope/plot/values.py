"""Values of one site, such as a cloud of points: a dot each with its interval, its null a grey bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.plot.select import PLACED, measures_with_values, readings_of, titled
from isoscope.show.charts import Chart, turned
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.curves import dot_of, rows_of_dots, value_axis
from isoscope.show.measures import COSINES, SCALES, Told, how_shown, title_of
from isoscope.show.readings import SiteReading, at_last, models, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def dots(
    frame: pd.DataFrame,
    measures: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] = PLACED,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw values of one site with intervals and nulls, a line a measure; measures share one axis.

    Of several sites the last is drawn, `output` where there is one.
    """
    return shown(dots_chart(frame, measures, told, kinds), ax, legend=legend)


def dots_chart(
    frame: pd.DataFrame, measures: Sequence[str] | None, told: Told | None, kinds: Sequence[str] = PLACED
) -> Chart:
    """The chart that `dots` draws."""
    there = measures_with_values(frame, kinds)
    asked = list(measures) if measures is not None else [m for m in SCALES[COSINES] if m in there]
    asked = asked or there[:1]
    own = [r for m in asked for r in last_site(readings_of(frame, m, kinds=kinds)) if r.known]
    if not own:
        raise IsoscopeError("there is nothing to draw: these rows hold no value of a site.")
    names = models(own)
    lines = [at for at in product(asked, names) if any((r.measure, r.model) == at for r in own)]
    shown_dots = [dot_of(r, lines.index((r.measure, r.model)), turned(names.index(r.model))[0]) for r in own]
    units = {how_shown(m).unit for m in asked}
    axis = replace(value_axis(own), name=units.pop() if len(units) == 1 else "")
    return rows_of_dots([title_of(m, told or {}) for m, _ in lines], shown_dots, axis)


def last_site(found: Sequence[SiteReading]) -> list[SiteReading]:
    """The readings of each model at the last step and the last place along the way of the data."""
    out: list[SiteReading] = []
    for name in models(found):
        own = at_last([r for r in found if r.model == name])
        last = max((r.place for r in own if r.known), default=None)
        out += [r for r in own if r.place == last]
    return out


def sites(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    kinds: Sequence[str] = PLACED,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw one measure at sites side by side, a line each, such as the matrices of a vocabulary."""
    return shown(sites_chart(frame, measure, told, kinds), ax, legend=legend)


def sites_chart(
    frame: pd.DataFrame, measure: str | None, told: Told | None, kinds: Sequence[str] = PLACED
) -> Chart:
    """The chart that `sites` draws; models stand beside each other at a site."""
    found = [r for r in readings_of(frame, measure, kinds=kinds) if r.known]
    names = models(found)
    own = [r for name in names for r in at_last([r for r in found if r.model == name])]
    places = unique(r.site for r in own)
    room = 0.5 / max(1, len(names))
    shown_dots = []
    for r in own:
        at = names.index(r.model)
        row = places.index(r.site) + room * (at - (len(names) - 1) / 2)
        shown_dots.append(dot_of(r, row, turned(at)[0]))
    axis = replace(value_axis(own), name=titled(own[0].measure, told))
    return rows_of_dots([name.replace("-", " ") for name in places], shown_dots, axis)
