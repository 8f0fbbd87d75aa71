"""Queries and keys of one head, their means ringed, the origin in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.kinds.sweep.clouds import by_step, called
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.clouds import AXES, SiteHead, framed_cloud, pulled
from isoscope.show.readings import ATTENTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def clouds(
    points: pd.DataFrame,
    layer: int | None = None,
    head: int | None = None,
    *,
    step: int | None = None,
    on: str = "shared",
    kind: str | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the queries and keys of one head, from points as `points()` gives them.

    `on` says on which axes: those that queries and keys share, `centred` or `random` ones. Without layer and
    head it is the head whose means lie furthest from the origin; without a step the last.
    """
    return shown(cloud_chart(points, layer, head, step=step, on=on, kind=kind), ax, legend=legend)


def cloud_chart(
    points: pd.DataFrame,
    layer: int | None,
    head: int | None,
    *,
    step: int | None = None,
    on: str = "shared",
    kind: str | None = None,
) -> Chart:
    """The chart that `clouds` draws."""
    if on not in AXES:
        raise unknown_name("kind of axes", on, AXES)
    own = of_heads(points, step)
    own = own[own["picture"] == on]
    there = [one for one in pulled(own) if _asked(one, kind, layer, head)]
    if not there:
        heads = ", ".join(f"{at}.{number}" for _, at, number in sorted(pulled(own))[:12]) or "none"
        raise IsoscopeError(
            f"no head {head} of layer {layer} is among these points; layers and heads that are: {heads}."
        )
    return framed_cloud(of_head(own, there[0])).named(f"layer {there[0][1]} head {there[0][2]}")


def of_heads(points: pd.DataFrame, step: int | None = None) -> pd.DataFrame:
    """The queries and keys of heads among points, of one unit: the last, or that of a step."""
    moving = by_step(points)
    own = moving if len(moving) else points
    own = own[own["picture"].isin(list(AXES)) & own["kind"].isin(ATTENTION) & own["head"].notna()]
    own = own[own["series"].isin(["query", "key"])]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: these points hold no queries and keys of heads.")
    units = sorted(set(own["unit"])) if "unit" in own else []
    if step is not None and called(step) not in units:
        steps = ", ".join(unit.removeprefix("step ").lstrip("0") or "0" for unit in units)
        raise IsoscopeError(f"step {step} has no queries and keys among these points; there are: {steps}.")
    return own[own["unit"] == (units[-1] if step is None else called(step))] if units else own


def of_head(points: pd.DataFrame, head: SiteHead) -> pd.DataFrame:
    """The points of one head."""
    kind, layer, number = head
    return points[(points["kind"] == kind) & (points["layer"] == layer) & (points["head"] == number)]


def _asked(one: SiteHead, kind: str | None, layer: int | None, head: int | None) -> bool:
    asked = zip((kind, layer, head), one, strict=True)
    return all(want is None or want == there for want, there in asked)
