"""A measure along the steps of a training run or a sweep: a line a layer, drawn by `report.steps_print`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.plot.axes import PLACED, finished, name_values, one_model, opened, readings_of
from isoscope.show.figures.step_axis import Changed, StepAxis, step_axis
from isoscope.show.figures.steps_print import draw_lines
from isoscope.show.figures.trajectories import Depths, depths
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
    found, axis = along(frame, measure)
    ax = opened(ax)
    own = [change for change in changes if change.measure == found[0].measure]
    draw_lines(ax, found, axis, _places(frame), own, alarms)
    name_values(ax, found, told)
    return finished(ax, legend=legend)


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
