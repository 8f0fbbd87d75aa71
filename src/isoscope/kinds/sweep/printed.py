"""The figures of a sweep as a paper prints them: trajectories by layer, and clouds as small multiples.

Vector graphics, text as text, the same file for the same rows. Trajectories have one panel a quantity. Clouds
have a row a head and a column a step, all steps of a head on the same axes; each is as large as it needs to
be, since vectors grow a hundredfold, and says how large.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from isoscope.kinds.sweep.clouds import by_step
from isoscope.kinds.sweep.marks import change_marks
from isoscope.kinds.sweep.rows import SweepRows, changes_of
from isoscope.show.charts import Chart
from isoscope.show.figures.clouds import framed_cloud, pulled
from isoscope.show.figures.step_axis import spaced
from isoscope.show.figures.trajectories import depths, trajectory
from isoscope.show.measures import Told, title_of
from isoscope.show.readings import ATTENTION, PLACES, read

PRINTED = (
    "loss", "mean_cosine_between", "relative_drift", "participation_ratio_split", "normalised_entropy",
    "drift_share", "query_relative_drift", "query_key_cosine",
)  # fmt: skip
HEADS, STEPS = 4, 6
_ACROSS = 4
_WIDTH, _HEIGHT, _SIDE = 1.9, 1.6, 1.15  # inches of a panel, and of a cloud


def printed_sweep(read_: SweepRows, told: Told) -> dict[str, bytes]:
    """The figures by name of their file; empty where there is nothing to draw, or no matplotlib."""
    from isoscope.show.draw.matplotlib.sheet import in_rows, printed

    try:
        lines = printed(in_rows(_trajectories(read_, told), _ACROSS), (_WIDTH, _HEIGHT), more=(0.3, 0.3))
        clouds = printed(_clouds(by_step(read_.points)), (_SIDE, _SIDE), more=(0.5, 0.5))
    except ImportError:
        return {}
    made = {"trajectories": lines, "clouds": clouds}
    return {f"{name}.{kind}": body for name, bodies in made.items() for kind, body in bodies.items()}


def _trajectories(read_: SweepRows, told: Told) -> list[Chart]:
    rows, axis = read_.rows, read_.axis
    own = rows[rows["head"].isna() & rows["measure"].isin(PRINTED) & rows["step"].isin(axis.steps)]
    readings = [r for r in read(own) if r.known and r.kind in (*PLACES, *ATTENTION, "training")]
    places, changes = depths(readings), changes_of(read_.between)
    charts = []
    for measure in PRINTED:
        mine = [r for r in readings if r.measure == measure]
        if len({r.step for r in mine}) > 1:
            chart = trajectory(mine, axis, places, mapped=False)
            marks = change_marks(changes, mine, axis, places)
            name = "step, log scale" if axis.log else "step"
            charts.append(
                replace(chart, series=[*chart.series, *marks]).named(title_of(measure, told), x=name)
            )
    return charts


def _clouds(points: pd.DataFrame) -> list[list[Chart]]:
    """A few heads at a few steps, on shared axes."""
    if points.empty:
        return []
    own = points[(points["picture"] == "shared") & points["series"].isin(["query", "key"])]
    units = sorted(set(own["unit"]))
    some = [units[i] for i in spaced(list(range(len(units))), STEPS)]
    rows: list[list[Chart]] = []
    for kind, layer, head in sorted(pulled(own[own["unit"] == units[-1]])[:HEADS]):
        mine = own[(own["kind"] == kind) & (own["layer"] == layer) & (own["head"] == head)]
        charts = [framed_cloud(mine[mine["unit"] == unit]) for unit in some]
        if not rows:
            steps = [int(unit.removeprefix("step ")) for unit in some]
            charts = [chart.named(f"step {step:,}") for chart, step in zip(charts, steps, strict=True)]
        rows.append([charts[0].named(y=f"layer {layer} head {head}"), *charts[1:]])
    return rows
