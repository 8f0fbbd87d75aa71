"""Values of one site, such as a cloud of points: a dot each with its interval, its null a grey bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from isoscope.errors import IsoscopeError
from isoscope.plot.axes import (
    PLACED,
    UNITS,
    finished,
    measures_with_values,
    name_values,
    opened,
    readings_of,
)
from isoscope.show.colours import MODELS, SOFT
from isoscope.show.draw.matplotlib.style import NULL, dot, folded, pen, plain
from isoscope.show.measures import Told, title_of
from isoscope.show.panels import SCALES
from isoscope.show.readings import SiteReading, at_last, models

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = 32


def dots(
    frame: pd.DataFrame,
    measures: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] = PLACED,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw values of one site with intervals and nulls, a line a measure; measures share one axis.

    Of several sites the last is drawn, `output` where there is one.
    """
    there = measures_with_values(frame, kinds)
    asked = list(measures) if measures is not None else [m for m in SCALES["Cosines"] if m in there]
    asked = asked or there[:1]
    own = [r for m in asked for r in last_site(readings_of(frame, m, kinds=kinds)) if r.known]
    if not own:
        raise IsoscopeError("there is nothing to draw: these rows hold no value of a site.")
    names = models(own)
    lines = [
        (m, name) for m in asked for name in names if any((r.measure, r.model) == (m, name) for r in own)
    ]
    height = {line: -float(i) for i, line in enumerate(lines)}
    ax = opened(ax)
    for r in own:
        if math.isfinite(r.null):
            at = height[r.measure, r.model]
            ax.plot(r.null, at, "|", color=SOFT[0], ms=dot(4), mew=pen(1.2), label=NULL, zorder=1)
    for i, name in enumerate(names):
        _draw(ax, [r for r in own if r.model == name], height, MODELS[i % len(MODELS)][0], plain(name))
    name_values(ax, own, told, across=True)
    units = {UNITS.get(m, "") for m in asked}
    ax.set_xlabel(units.pop() if len(units) == 1 else "")
    ax.set_yticks(list(height.values()), [folded(title_of(m, told or {}), _LETTERS) for m, _ in lines])
    ax.set_ylim(-len(lines) + 0.4, 0.6)
    ax.tick_params(axis="y", length=0)
    return finished(ax, legend=legend)


def last_site(found: Sequence[SiteReading]) -> list[SiteReading]:
    """The readings of each model at the last step and the last place along the way of the data."""
    out: list[SiteReading] = []
    for name in models(found):
        own = at_last([r for r in found if r.model == name])
        last = max((r.place for r in own if r.known), default=None)
        out += [r for r in own if r.place == last]
    return out


def _draw(
    ax: Any, own: Sequence[SiteReading], height: dict[tuple[str, str], float], colour: str, name: str
) -> None:
    y = [height[r.measure, r.model] for r in own]
    ax.plot([r.value for r in own], y, "o", color=colour, ms=dot(1.4), mew=0, label=name, zorder=3)
    for r, at in zip(own, y, strict=True):
        if r.bounded:
            ax.hlines(at, r.low, r.high, color=colour, lw=pen(1.1), zorder=2)


def sites(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    kinds: Sequence[str] = PLACED,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw one measure at sites side by side, a line each, such as the matrices of a vocabulary."""
    found = [r for r in readings_of(frame, measure, kinds=kinds) if r.known]
    names = models(found)
    own = [r for name in names for r in at_last([r for r in found if r.model == name])]
    places = list(dict.fromkeys(r.site for r in own))
    room = 0.5 / max(1, len(names))
    ax = opened(ax)
    for r in own:
        y = -places.index(r.site) - room * (names.index(r.model) - (len(names) - 1) / 2)
        colour = MODELS[names.index(r.model) % len(MODELS)][0]
        if math.isfinite(r.null):
            ax.plot(r.null, y, "|", color=SOFT[0], ms=dot(4), mew=pen(1.2), label=NULL, zorder=1)
        ax.plot(r.value, y, "o", color=colour, ms=dot(1.4), mew=0, label=plain(r.model), zorder=3)
        if r.bounded:
            ax.hlines(y, r.low, r.high, color=colour, lw=pen(1.1), zorder=2)
    name_values(ax, own, told, across=True)
    ax.set_yticks([-i for i in range(len(places))], [plain(name.replace("-", " ")) for name in places])
    ax.set_ylim(-len(places) + 0.4, 0.6)
    ax.tick_params(axis="y", length=0)
    return finished(ax, legend=legend)
