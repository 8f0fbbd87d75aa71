"""The weights of one head: the eigenvalues of W in the complex plane, and where its signal passes, ρ(t)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.plot.axes import finished, opened
from isoscope.show.colours import SOFT
from isoscope.show.draw.matplotlib.style import dot, pen
from isoscope.show.figures.weights.propagation import LINES, OTHERS, THIS
from isoscope.show.readings import QUERY_KEY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = {"random": "--", "softmax": ":"}


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
    own = _pictures(points, "spectrum")
    layer, head = _head(own, layer, head)
    here = own[own["layer"] == layer]
    ax = opened(ax)
    for (name, pair), mine, size in (
        (OTHERS, here[here["head"] != head], 0.6),
        (THIS, here[here["head"] == head], 1.2),
    ):
        ax.plot(mine["x"], mine["y"], "o", color=pair[0], ms=dot(size), mew=0, label=name, alpha=0.8)
    ax.axhline(0, color=SOFT[0], lw=pen(0.4), zorder=0)
    ax.axvline(0, color=SOFT[0], lw=pen(0.4), zorder=0)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="real part", ylabel="imaginary part")
    ax.set_title(f"layer {layer} head {head}", loc="left")
    return finished(ax, legend=legend)


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
    own = _pictures(points, "propagation")
    lines = LINES["measured" if measured else "predicted"]
    own = own[own["series"].isin(list(lines))]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: attention was not measured beside these weights.")
    layer, head = _head(own, layer, head)
    mine = own[(own["layer"] == layer) & (own["head"] == head)]
    ax = opened(ax)
    if measured:
        ax.axhline(1, color=SOFT[0], lw=pen(0.7), ls="--", label="even")
    for series, (name, pair) in lines.items():
        line = mine[mine["series"] == series].sort_values("x")
        if len(line):
            dashes = _DASHES.get(series, "-")
            ax.plot(line["x"], line["y"], label=name, color=pair[0], lw=pen(), ls=dashes)
    top = 1.0 if not measured else 1.06 * max(1.0, float(mine["y"].max()))
    ax.set(xlim=(0, 1), ylim=(0, 1.04 * top), xlabel="place of the key, t/T")
    ax.set_ylabel("attention, even = 1" if measured else "ρ, chance to pass")
    ax.set_title(f"layer {layer} head {head}", loc="left")
    return finished(ax, legend=legend)


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
