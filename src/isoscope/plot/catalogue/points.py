"""The figures that points offer: queries and keys of heads, eigenvalues of W, where its signal passes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.kinds.sweep.clouds import by_step
from isoscope.plot.pairs import cloud_chart, of_heads
from isoscope.plot.spectra import eigenvalues_chart, heads_of, propagation_chart
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.figures.clouds import SiteHead, pulled
from isoscope.show.figures.step_axis import spaced

_SQUARE = Shape(2, 4, 4, 8, height=1.75)


def of_points(points: pd.DataFrame) -> list[Offered]:
    """Clouds where queries and keys were kept, spectra where weights were."""
    if points.empty:
        return []
    made = []
    moving = by_step(points)
    try:
        last = of_heads(points)
    except IsoscopeError:
        last = points.iloc[:0]
    shared = pulled(last[last["picture"] == "shared"]) if len(last) else []
    if shared and len(moving):
        made.append(_moving(points, sorted(set(moving["unit"])), sorted(shared[:4])))
    elif shared:
        panels: list[Panel] = [
            partial(cloud_chart, points, head[1], head[2], kind=head[0]) for head in shared
        ]
        says = "queries and keys of heads, those that lie furthest from the origin first"
        made.append(Offered("clouds", says, panels, _SQUARE))
    for name, draw, says in (
        ("eigenvalues", eigenvalues_chart, "the eigenvalues of W of heads in the complex plane"),
        ("propagation", propagation_chart, "where the signal of heads passes, by their weights"),
    ):
        picture = "spectrum" if name == "eigenvalues" else name
        every = heads_of(points, picture)
        some = [every[i] for i in spaced(list(range(len(every))), 6)]
        each: list[Panel] = [partial(draw, points, *at) for at in some]
        made += [Offered(name, says, each, Shape(1, 3, 2, 6, height=1.9))] if each else []
    return made


def _moving(points: pd.DataFrame, units: list[str], shown: list[SiteHead]) -> Offered:
    """A line a head, a column a step."""
    numbers = [int(unit.removeprefix("step ")) for unit in units]
    some = spaced(numbers, 3)
    panels: list[Panel] = [
        partial(_cloud_at, points, head, step, line == 0, step == some[0])
        for line, head in enumerate(shown)
        for step in some
    ]
    across = len(some)
    shape = Shape(across, across, across * len(shown), across * len(shown), height=1.15, lifted=False)
    return Offered("clouds", "queries and keys of a few heads, step by step, on shared axes", panels, shape)


def _cloud_at(points: pd.DataFrame, head: SiteHead, step: int, top: bool, left: bool) -> Chart:
    chart = cloud_chart(points, head[1], head[2], kind=head[0], step=step)
    title, name = f"step {step:,}" if top else "", f"layer {head[1]}\nhead {head[2]}" if left else ""
    return replace(chart, title=title, y=replace(chart.up, name=name))
