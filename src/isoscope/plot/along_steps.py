"""A measure along the steps of a training run or a sweep: a line a layer, with changes and alarms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.kinds.sweep.marks import change_marks
from isoscope.plot.select import PLACED, one_model, readings_of, titled
from isoscope.show.charts import Alarm, Chart
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.step_axis import Changed, StepAxis, step_axis
from isoscope.show.figures.trajectories import Depths, depths, trajectory
from isoscope.show.measures import Told
from isoscope.show.readings import SiteReading, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OF_STEPS = (*PLACED, "training")
"""Kinds of rows that run along the steps; `training` are the loop's own numbers, such as its loss."""


def steps(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
    changes: Collection[Changed] = (),
    alarms: Collection[int] = (),
) -> Axes:
    """Draw a measure along the steps, with intervals and null: a line a layer, from light to dark.

    `changes` are those of a sweep, `alarms` the steps at which one began; `told` is `run.measures`.
    """
    return shown(steps_chart(frame, measure, told, changes, alarms), ax, legend=legend)


def steps_chart(
    frame: pd.DataFrame,
    measure: str | None,
    told: Told | None,
    changes: Collection[Changed] = (),
    alarms: Collection[int] = (),
) -> Chart:
    """The chart that `steps` draws."""
    found, axis = along(frame, measure)
    places = _places(frame)
    chart = trajectory(found, axis, places, mapped=False)
    series = [*chart.series, *change_marks(list(changes), found, axis, places)]
    chart = replace(chart, series=series, alarms=[Alarm(axis.at(step)) for step in alarms])
    return chart.named(y=titled(found[0].measure, told), x="step, log scale" if axis.log else "step")


def along(frame: pd.DataFrame, measure: str | None) -> tuple[list[SiteReading], StepAxis]:
    """The readings of a measure that have a step, of one model and kind of attention, and their axis."""
    found = one_model([r for r in readings_of(frame, measure, kinds=OF_STEPS) if r.step is not None])
    if not any(r.known for r in found):
        raise IsoscopeError(
            "there is nothing to draw along steps: these rows have none; draw them along the layers."
        )
    first = found[0].kind
    if first.startswith("cross_") or any(r.kind == f"cross_{first}" for r in found):
        found = [r for r in found if r.kind == first]
    axis = step_axis(r.step for r in found if r.step is not None)
    return [r for r in found if r.step in axis.steps], axis


def _places(frame: pd.DataFrame) -> Depths:
    """Of all sites in these rows, so that a layer has one colour in all panels that are drawn of them."""
    rows = frame[frame["head"].isna() & frame["kind"].isin(OF_STEPS)]
    return depths(read(rows.drop_duplicates(["kind", "layer"])))
