"""The figures that points offer: queries and keys of heads, eigenvalues of W, where its signal passes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.kinds.sweep.clouds import by_step
from isoscope.plot.pairs import clouds, of_heads
from isoscope.plot.spectra import eigenvalues, heads_of, propagation
from isoscope.show.draw.matplotlib.sheet import Offered, Panel, Shape
from isoscope.show.figures.clouds_print import pulled
from isoscope.show.figures.trajectories import spaced

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
        panels: list[Panel] = [partial(_cloud, points, head) for head in shared]
        says = "queries and keys of heads, those that lie furthest from the origin first"
        made.append(Offered("clouds", says, panels, _SQUARE))
    for name, draw, says in (
        ("eigenvalues", eigenvalues, "the eigenvalues of W of heads in the complex plane"),
        ("propagation", propagation, "where the signal of heads passes, by their weights"),
    ):
        picture = "spectrum" if name == "eigenvalues" else name
        every = heads_of(points, picture)
        some = [every[i] for i in spaced(list(range(len(every))), 6)]
        each: list[Panel] = [partial(_of_head, draw, points, at) for at in some]
        made += [Offered(name, says, each, Shape(1, 3, 2, 6, height=1.9))] if each else []
    return made


def _moving(points: pd.DataFrame, units: list[str], shown: list[tuple[str, int, int]]) -> Offered:
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


def _cloud(points: pd.DataFrame, head: tuple[str, int, int], ax: Any) -> None:
    clouds(points, head[1], head[2], kind=head[0], ax=ax, legend=False)


def _cloud_at(
    points: pd.DataFrame, head: tuple[str, int, int], step: int, top: bool, left: bool, ax: Any
) -> None:
    clouds(points, head[1], head[2], kind=head[0], step=step, ax=ax, legend=False)
    ax.set_title(f"step {step:,}" if top else "", loc="left")
    ax.set_ylabel(f"layer {head[1]}\nhead {head[2]}" if left else "")


def _of_head(draw: Any, points: pd.DataFrame, head: tuple[int, int], ax: Any) -> None:
    draw(points, *head, ax=ax, legend=False)
