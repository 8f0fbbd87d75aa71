"""The weights of one head: the eigenvalues of W in the complex plane, and where its signal passes, ρ(t)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.show.charts import Chart
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.figures.weights import propagation as figures
from isoscope.show.figures.weights.propagation import LINES, OTHERS, THIS
from isoscope.show.readings import QUERY_KEY

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def eigenvalues(
    points: pd.DataFrame,
    layer: int | None = None,
    head: int | None = None,
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the eigenvalues of W of one head among those of its layer's other heads; equal scales.

    `points` are those of a run of weights; without layer and head it is the first head.
    """
    return shown(eigenvalues_chart(points, layer, head), ax, legend=legend)


def eigenvalues_chart(points: pd.DataFrame, layer: int | None, head: int | None) -> Chart:
    """The chart that `eigenvalues` draws."""
    own = _pictures(points, "spectrum")
    layer, head = _head(own, layer, head)
    here = own[own["layer"] == layer]
    groups = {OTHERS[0]: here[here["head"] != head], THIS[0]: here[here["head"] == head]}
    chart = figures.eigenvalues(
        {name: (part["x"].tolist(), part["y"].tolist()) for name, part in groups.items()}
    )
    return chart.named(f"layer {layer} head {head}")


def propagation(
    points: pd.DataFrame,
    layer: int | None = None,
    head: int | None = None,
    *,
    measured: bool = False,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw where the signal of one head passes, by its weights; `measured`: where its last query attends."""
    return shown(propagation_chart(points, layer, head, measured=measured), ax, legend=legend)


def propagation_chart(
    points: pd.DataFrame, layer: int | None, head: int | None, *, measured: bool = False
) -> Chart:
    """The chart that `propagation` draws."""
    own = _pictures(points, "propagation")
    panel = "measured" if measured else "predicted"
    own = own[own["series"].isin(list(LINES[panel]))]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: attention was not measured beside these weights.")
    layer, head = _head(own, layer, head)
    mine = own[(own["layer"] == layer) & (own["head"] == head)].sort_values("x", kind="stable")
    groups = mine.groupby("series", sort=False)
    lines = {str(name): (line["x"].tolist(), line["y"].tolist()) for name, line in groups}
    return figures.lines(panel, lines).named(f"layer {layer} head {head}")


def heads_of(points: pd.DataFrame, picture: str) -> list[tuple[int, int]]:
    """The heads that have this picture."""
    own = points[(points["picture"] == picture) & points["kind"].isin(QUERY_KEY)].dropna(subset=["head"])
    pairs = own[["layer", "head"]].drop_duplicates()
    return sorted((int(a), int(b)) for a, b in zip(pairs["layer"], pairs["head"], strict=True))


def _pictures(points: pd.DataFrame, picture: str) -> pd.DataFrame:
    own = points[(points["picture"] == picture) & points["kind"].isin(QUERY_KEY)].dropna(subset=["head"])
    if own.empty:
        raise IsoscopeError(
            "there is nothing to draw: these points hold no pictures of the weights of heads."
        )
    last = sorted(set(own["unit"]))[-1] if "unit" in own else None
    return own if last is None else own[own["unit"] == last]


def _head(own: pd.DataFrame, layer: int | None, head: int | None) -> tuple[int, int]:
    there = sorted({(int(a), int(b)) for a, b in zip(own["layer"], own["head"], strict=True)})
    asked = [(a, b) for a, b in there if layer in (None, a) and head in (None, b)]
    if not asked:
        some = ", ".join(f"{a}.{b}" for a, b in there[:12])
        raise IsoscopeError(
            f"no head {head} of layer {layer} is among these points; layers and heads that are: {some}."
        )
    return asked[0]
