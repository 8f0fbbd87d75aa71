"""The figures that points offer: queries and keys of heads, eigenvalues of W, where its signal passes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.kinds.sweep.clouds import by_step
from isoscope.plot import pictures
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import Offered, Shape
from isoscope.show.figures.albums import SiteHead
from isoscope.show.figures.clouds import pulled
from isoscope.show.figures.step_axis import spaced

_WEIGHTS = {
    "eigenvalues": ("spectrum", pictures.eigenvalues, "the eigenvalues of W of heads in the complex plane"),
    "propagation": (
        "propagation", pictures.propagation, "where the signal of heads passes, by their weights"
    ),
}  # fmt: skip
"""Figures of weights by name: the picture that they show, its chart, and one line on them."""


def of_points(points: pd.DataFrame) -> list[Offered]:
    """Clouds where queries and keys were kept, spectra where weights were."""
    offered = []
    try:
        last = pictures.of_attention(points)
        shared = pulled(last[last["picture"] == "shared"])
    except IsoscopeError:
        shared = []
    moving = by_step(points)
    if shared and len(moving):
        offered.append(_moving(points, sorted(set(moving["unit"])), sorted(shared[:4])))
    elif shared:
        panels = [partial(pictures.cloud, points, at, head, kind=kind) for kind, at, head in shared]
        says = "queries and keys of heads, those that lie furthest from the origin first"
        offered.append(Offered("clouds", says, panels, Shape(2, 4, 4, 8, height=1.75)))
    for name, (picture, chart, says) in _WEIGHTS.items():
        heads = pictures.heads_of(pictures.of_weights(points, picture))
        each = [partial(chart, points, *head) for head in spaced(heads, 6)]
        offered += [Offered(name, says, each, Shape(1, 3, 2, 6, height=1.9))] if each else []
    return offered


def _moving(points: pd.DataFrame, units: list[str], shown: list[SiteHead]) -> Offered:
    """One line of panels per head, one column per step."""
    some = spaced([int(unit.removeprefix("step ")) for unit in units], 3)
    panels = [
        partial(_cloud_at, points, head, step, head == shown[0], step == some[0])
        for head in shown
        for step in some
    ]
    across, every = len(some), len(panels)
    shape = Shape(across, across, every, every, height=1.15, lifted=False)
    return Offered("clouds", "queries and keys of a few heads, step by step, on shared axes", panels, shape)


def _cloud_at(points: pd.DataFrame, head: SiteHead, step: int, top: bool, left: bool) -> Chart:
    chart = pictures.cloud(points, head[1], head[2], kind=head[0], step=step)
    title, name = f"step {step:,}" if top else "", f"layer {head[1]}\nhead {head[2]}" if left else ""
    return replace(chart, title=title, y=replace(chart.up, name=name))
