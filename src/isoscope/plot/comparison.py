"""Mean cosine against drift, one dot a layer, one colour a model: what `isoscope compare` asks.

Layers are joined in order, layer 0 is hollow. Against the relative drift the dashed curve is its square: when
all norms are equal the mean cosine lies on it, so what is seen is how far models leave it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.plot.select import probed, titled
from isoscope.show.charts import Chart, Series, turned
from isoscope.show.colours import SOFT
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.comparison import Dot, against_drift
from isoscope.show.measures import Told
from isoscope.show.readings import PLACES, SiteReading, at_last, models, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = ("relative_drift", "drift", "mean_norm")
_UP = "mean_cosine"


def scatter(
    frame: pd.DataFrame,
    across: str = "relative_drift",
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the mean cosine of every layer against its drift; of several steps the last of each model."""
    return shown(scatter_chart(frame, across, told), ax, legend=legend)


def scatter_chart(frame: pd.DataFrame, across: str, told: Told | None) -> Chart:
    """The chart that `scatter` draws."""
    if across not in ACROSS:
        raise unknown_name("measure to draw across", across, ACROSS)
    rows = probed(frame)
    rows = rows[rows["head"].isna() & rows["kind"].isin(PLACES) & rows["measure"].isin([across, _UP])]
    found = [r for r in read(rows) if r.known]
    groups = {name: _dots([r for r in found if r.model == name], across) for name in models(found)}
    if not any(groups.values()):
        raise IsoscopeError(f"there is nothing to draw: no layer has both {across} and {_UP}.")
    colours = {name: turned(at)[0] for at, name in enumerate(groups)}
    chart = against_drift(groups, across, colours)
    hollow = Series("layer 0, hollow", [], [], style="dots", hollow=True, colour=SOFT)  # for the key
    if any(any(one.hollows) for one in chart.series):
        chart = replace(chart, series=[*chart.series, hollow])
    return chart.named(y=titled(_UP, told), x=titled(across, told))


def _dots(own: list[SiteReading], across: str) -> list[Dot]:
    own = at_last(own)
    up = {r.site: r for r in own if r.measure == _UP}
    return [Dot(r, up[r.site]) for r in own if r.measure == across and r.site in up]
