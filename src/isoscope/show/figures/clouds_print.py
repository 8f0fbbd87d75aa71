"""The queries and keys of one head, for print: two clouds about the origin, their means ringed.

Decided here: both axes have one range with the origin in its middle, which is told in a corner in place of
ticks: what matters of a cloud is where it lies against its size, and vectors grow a hundredfold in training.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from isoscope.formatting import short
from isoscope.show.colours import INK, SOFT
from isoscope.show.draw.matplotlib.style import dot, pen, small
from isoscope.show.figures.clouds import SERIES

MARKS = {"circle": "o", "diamond": "D"}
Head = tuple[str, int, int]
"""The kind of site, layer and head."""


def pulled(points: pd.DataFrame) -> list[Head]:
    """Heads by how far their mean query and mean key lie from the origin, against how far points do."""
    found: dict[Head, float] = {}
    for (kind, layer, head), own in points.groupby(["kind", "layer", "head"]):
        means = own.groupby("series")[["x", "y"]].mean()
        size = float((own[["x", "y"]] ** 2).sum(axis=1).mean()) or 1.0
        dot_ = float(means.prod(axis=0).sum()) if len(means) == 2 else 0.0
        found[str(kind), int(str(layer)), int(str(head))] = abs(dot_) / size
    return sorted(found, key=lambda place: -found[place])


def draw_cloud(axes: Any, own: pd.DataFrame) -> None:
    """The points of one head at one step: `series` is query or key, `x` and `y` are on any axes."""
    values = own[["x", "y"]].to_numpy(float)
    values = np.abs(values[np.isfinite(values)])
    far = 1.08 * float(values.max(initial=0.0)) or 1.0
    axes.axhline(0, color=SOFT[0], lw=pen(0.4))
    axes.axvline(0, color=SOFT[0], lw=pen(0.4))
    for series, (name, (colour, _), symbol) in SERIES.items():
        mine = own[own["series"] == series]
        look = {"color": colour, "ms": dot(0.65), "mew": 0, "alpha": 0.7, "zorder": 2}
        axes.plot(mine["x"], mine["y"], MARKS[symbol], label=name, **look)
    for series, (_, (colour, _), symbol) in SERIES.items():
        mean = own.loc[own["series"] == series, ["x", "y"]].mean()
        look = {"color": colour, "ms": dot(1.7), "mec": INK[0], "mew": pen(0.6), "zorder": 3}
        axes.plot(mean["x"], mean["y"], MARKS[symbol], label="their means", **look)
    axes.set(xlim=(-far, far), ylim=(-far, far), aspect="equal", xticks=[], yticks=[])
    corner = {"transform": axes.transAxes, "ha": "right", "va": "bottom"}
    ground = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 0.6}
    axes.text(0.98, 0.02, f"±{short(far, 2)}", **corner, color=SOFT[0], fontsize=small(), bbox=ground)
