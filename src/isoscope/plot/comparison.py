"""Mean cosine against drift, one dot a layer, one colour a model: what `isoscope compare` asks.

Layers are joined in order, layer 0 is hollow. Against the relative drift the dashed curve is its square: when
all norms are equal the mean cosine lies on it, so what is seen is how far models leave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.plot.axes import finished, opened, probed, titled
from isoscope.show.colours import MODELS, SOFT
from isoscope.show.draw.matplotlib.style import MARKS, dot, pen, plain
from isoscope.show.measures import Told
from isoscope.show.readings import PLACES, SiteReading, at_last, models, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = ("relative_drift", "drift", "mean_norm")
_UP = "mean_cosine"


def scatter(
    frame: pd.DataFrame,
    across: str = "relative_drift",
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the mean cosine of every layer against its drift; of several steps the last of each model."""
    if across not in ACROSS:
        raise unknown_name("measure to draw across", across, ACROSS)
    rows = probed(frame)
    rows = rows[rows["head"].isna() & rows["kind"].isin(PLACES) & rows["measure"].isin([across, _UP])]
    found = [r for r in read(rows) if r.known]
    groups = {name: _dots([r for r in found if r.model == name], across) for name in models(found)}
    dots = [pair for group in groups.values() for pair in group]
    if not dots:
        raise IsoscopeError(f"there is nothing to draw: no layer has both {across} and {_UP}.")
    ax = opened(ax)
    right = 1.06 * max(0.0, *(x.value for x, _ in dots)) or 1.0
    for i, (name, group) in enumerate(groups.items()):
        colour, mark = MODELS[i % len(MODELS)][0], MARKS[i // len(MODELS) % len(MARKS)]
        pairs = sorted(group, key=lambda pair: pair[0].place)
        x, y = [a.value for a, _ in pairs], [b.value for _, b in pairs]
        ax.plot(x, y, marker=mark, color=colour, lw=pen(0.5), ms=dot(1.1), label=plain(name), mew=pen(0.6))
        for a, b in pairs:
            if b.bounded:
                ax.vlines(a.value, b.low, b.high, color=colour, lw=pen(0.7))
            if a.kind == "layer" and a.layer == 0:
                ax.plot(
                    a.value, b.value, mark, mfc="white", mec=colour, ms=dot(1.1), mew=pen(0.7), zorder=4,
                    label="layer 0, hollow" if i == len(groups) - 1 else "_",
                )  # fmt: skip
    if across == "relative_drift":
        curve = [right * i / 60 for i in range(61)]
        square = [x * x for x in curve]
        ax.plot(curve, square, "--", color=SOFT[0], lw=pen(0.75), zorder=0, label="relative drift squared")
    ax.set_xlim(min(0.0, *(x.value for x, _ in dots)), right)
    ax.set(xlabel=titled(across, told), ylabel=titled(_UP, told))
    return finished(ax, legend=legend)


def _dots(own: list[SiteReading], across: str) -> list[tuple[SiteReading, SiteReading]]:
    own = at_last(own)
    up = {r.site: r for r in own if r.measure == _UP}
    return [(r, up[r.site]) for r in own if r.measure == across and r.site in up]
