"""Maps: heads × layers, and layers × steps; a cell is grey where there is no value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import unknown_name
from isoscope.plot.along_steps import along
from isoscope.plot.select import one_model, readings_of, titled
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.maps import bounds, head_map
from isoscope.show.figures.panels import KINDS
from isoscope.show.figures.trajectories import depths, trajectory
from isoscope.show.measures import MAPS, Told
from isoscope.show.readings import at_last

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAPPED = tuple(dict.fromkeys(m for group in MAPS.values() for m in group))
"""Measures of heads that pages draw as maps."""


def heads(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    kind: str | None = None,
    ax: Axes | None = None,
    told: Told | None = None,
) -> Axes:
    """Draw a map of heads, layers down and heads across; of several steps the last, of `kind` one kind."""
    return shown(heads_chart(frame, measure, kind, told), ax, legend=False)


def heads_chart(frame: pd.DataFrame, measure: str | None, kind: str | None, told: Told | None) -> Chart:
    """The chart that `heads` draws."""
    found = one_model(readings_of(frame, measure, heads=True, kinds=list(KINDS), prefer=MAPPED))
    there = [name for name in KINDS if any(r.kind == name for r in found)]
    if kind is not None and kind not in there:
        raise unknown_name("kind of attention in these rows", kind, there)
    own = at_last([r for r in found if r.kind == (kind or there[0])])
    chart = head_map(own, *bounds(own[0].measure, [r.value for r in found]))
    return chart.named(titled(own[0].measure, told))


def layers_by_steps(
    frame: pd.DataFrame, measure: str | None = None, *, ax: Axes | None = None, told: Told | None = None
) -> Axes:
    """Draw a map of layers and steps of one measure: every layer a line of cells, the first on top."""
    return shown(layers_by_steps_chart(frame, measure, told), ax, legend=False)


def layers_by_steps_chart(frame: pd.DataFrame, measure: str | None, told: Told | None) -> Chart:
    """The chart that `layers_by_steps` draws: the map that the page has under the lines."""
    found, axis = along(frame, measure)
    found = [r for r in found if r.kind != "training"] or found
    chart = replace(trajectory(found, axis, depths(found), mapped=True), series=())
    return chart.named(titled(found[0].measure, told), x="step, log scale" if axis.log else "step")
