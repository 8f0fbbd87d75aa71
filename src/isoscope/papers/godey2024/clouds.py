"""The queries and keys of one head before training and after it, as clouds on two axes.

Taken from what the Monitor kept of a training. Decided here: the head is the one whose mean query and mean
key are largest and most parallel at the end, of those that have a picture at both; axes that are not centred
lean on the mean by construction, so centred and random ones stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from isoscope.papers.lines import dots
from isoscope.papers.workshop import Trained
from isoscope.results.points import points_frame
from isoscope.results.store import read_run
from isoscope.results.trajectory import trajectory
from isoscope.show.charts import Chart

AXES = {"shared": "Shared axes", "centred": "Centred axes", "random": "Random axes"}
NAMES = {"query": "queries", "key": "keys"}
_PULL = ("query_key_cosine", "query_relative_drift", "key_relative_drift")


def clouds(trainings: Sequence[Trained]) -> pd.DataFrame:
    """Points of one head of the first training, at its first step and at its last."""
    if not trainings:
        return points_frame([])
    run = read_run(trainings[0].folder)
    of = trajectory(run)
    ends = {of.steps[place]: run.points(of.units[place]) for place in (0, -1)}
    both = set.intersection(*(set(zip(part["layer"], part["head"], strict=True)) for part in ends.values()))
    ordered = [place for place in _pulled(of.rows(_PULL, heads=True, only=of.steps[-1:])) if place in both]
    if not ordered:
        return points_frame([])
    layer, head = ordered[0]
    parts = []
    for step, part in ends.items():
        own = part[(part["layer"] == layer) & (part["head"] == head) & part["series"].isin(list(NAMES))]
        parts.append(own.assign(series=[f"{NAMES[name]}, step {step}" for name in own["series"]]))
    return pd.concat(parts, ignore_index=True).drop(columns="unit")


def _pulled(rows: pd.DataFrame) -> list[tuple[int, int]]:
    """Layers and heads, those first whose mean query and mean key are largest and most parallel."""
    wide = rows.pivot_table(index=["layer", "head"], columns="measure", values="value")
    pull = wide.reindex(columns=list(_PULL)).abs().prod(axis=1, skipna=False).dropna()
    return [(int(layer), int(head)) for layer, head in pull.sort_values(ascending=False).index]


def draw_clouds(points: pd.DataFrame) -> list[Chart]:
    """A chart for each kind of axes; nothing where there are no points."""
    charts = []
    for how, title in AXES.items():
        own = points[points["picture"] == how] if len(points) else points
        if not len(own):
            continue
        layer, head = int(own["layer"].iloc[0]), int(own["head"].iloc[0])
        clouds = [dots(str(name), part, "x", "y") for name, part in own.groupby("series", sort=False)]
        remark = f"layer {layer}, head {head} of one seed; each step has its own axes"
        charts.append(Chart(title, "1st axis", "2nd", clouds, remark=remark, centred=True))
    return charts
