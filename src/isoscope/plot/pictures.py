"""Charts of points of one head: queries and keys, eigenvalues of W, and where its signal passes, ρ(t)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.kinds.sweep.clouds import by_step, called
from isoscope.show.charts import Chart
from isoscope.show.figures.clouds import AXES, framed_cloud, pulled
from isoscope.show.figures.weights import heads as weights
from isoscope.show.figures.weights.heads import LINES, OTHERS, THIS
from isoscope.show.readings import ATTENTION, QUERY_KEY

Head = TypeVar("Head", tuple[int, int], tuple[str, int, int])
"""Layer and head, or these after the kind of attention."""


def cloud(
    points: pd.DataFrame,
    layer: int | None,
    head: int | None,
    *,
    step: int | None = None,
    on: str = "shared",
    kind: str | None = None,
) -> Chart:
    """Queries and keys of one head, their means ringed, the origin in the middle."""
    if on not in AXES:
        raise unknown_name("kind of axes", on, AXES)
    own = of_attention(points, step)
    own = own[own["picture"] == on]
    kind, layer, head = _picked(pulled(own), (kind, layer, head))
    chart = framed_cloud(own[(own["kind"] == kind) & (own["layer"] == layer) & (own["head"] == head)])
    return chart.named(f"layer {layer} head {head}")


def of_attention(points: pd.DataFrame, step: int | None = None) -> pd.DataFrame:
    """The queries and keys of heads among points, of one unit: the last, or that of a step."""
    moving = by_step(points)
    own = moving if len(moving) else points
    own = own[own["picture"].isin(list(AXES)) & own["kind"].isin(ATTENTION) & own["head"].notna()]
    own = own[own["series"].isin(["query", "key"])]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: these points hold no queries and keys of heads.")
    if step is None:
        return _last_unit(own)
    units = sorted(set(own["unit"])) if "unit" in own else []
    if called(step) not in units:
        steps = ", ".join(unit.removeprefix("step ").lstrip("0") or "0" for unit in units)
        raise IsoscopeError(f"step {step} has no queries and keys among these points; there are: {steps}.")
    return own[own["unit"] == called(step)]


def eigenvalues(points: pd.DataFrame, layer: int | None, head: int | None) -> Chart:
    """The eigenvalues of W of one head among those of its layer's other heads."""
    own = _last_of_weights(points, "spectrum")
    layer, head = _picked(heads_of(own), (layer, head))
    here = own[own["layer"] == layer]
    groups = {OTHERS[0]: here[here["head"] != head], THIS[0]: here[here["head"] == head]}
    chart = weights.eigenvalues({name: (g["x"].tolist(), g["y"].tolist()) for name, g in groups.items()})
    return chart.named(f"layer {layer} head {head}")


def propagation(
    points: pd.DataFrame, layer: int | None, head: int | None, *, measured: bool = False
) -> Chart:
    """Where the signal of one head passes by its weights, or where its last query was measured to attend."""
    own = _last_of_weights(points, "propagation")
    panel = "measured" if measured else "predicted"
    own = own[own["series"].isin(list(LINES[panel]))]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: attention was not measured beside these weights.")
    layer, head = _picked(heads_of(own), (layer, head))
    mine = own[(own["layer"] == layer) & (own["head"] == head)].sort_values("x", kind="stable")
    groups = mine.groupby("series", sort=False)
    chart = weights.lines(panel, {str(name): (g["x"].tolist(), g["y"].tolist()) for name, g in groups})
    return chart.named(f"layer {layer} head {head}")


def of_weights(points: pd.DataFrame, picture: str) -> pd.DataFrame:
    """The points of one kind of picture of the weights of heads."""
    return points[(points["picture"] == picture) & points["kind"].isin(QUERY_KEY) & points["head"].notna()]


def heads_of(points: pd.DataFrame) -> list[tuple[int, int]]:
    """Layer and head of all heads among points, in order."""
    pairs = points[["layer", "head"]].drop_duplicates()
    return sorted((int(a), int(b)) for a, b in zip(pairs["layer"], pairs["head"], strict=True))


def _last_of_weights(points: pd.DataFrame, picture: str) -> pd.DataFrame:
    own = of_weights(points, picture)
    if own.empty:
        raise IsoscopeError(
            "there is nothing to draw: these points hold no pictures of the weights of heads."
        )
    return _last_unit(own)


def _last_unit(own: pd.DataFrame) -> pd.DataFrame:
    """The points of the last unit; those of an observation have no units."""
    return own[own["unit"] == max(own["unit"])] if "unit" in own else own


def _picked(heads: Sequence[Head], asked: tuple[object, ...]) -> Head:
    """The first head that is as asked for, where None stands for any."""
    for one in heads:
        if all(want in (None, there) for want, there in zip(asked, one, strict=True)):
            return one
    some = ", ".join(f"{layer}.{head}" for *_, layer, head in sorted(heads)[:12]) or "none"
    raise IsoscopeError(
        f"no head {asked[-1]} of layer {asked[-2]} is among these points; layers and heads that are: {some}."
    )
