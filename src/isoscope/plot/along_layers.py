"""A measure along the layers: its interval as bars, its null dashed, a colour a model or a shade a step.

Decided here: of several models each is drawn at its last step; of one at many steps a few are, evenly spaced.
A layer without a value is a gap, and a shallow model is not joined to the output across layers that it has
not. With more than `MOST_BARS` layers an interval is a band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from isoscope.plot.axes import finished, name_values, one_model, opened, readings_of
from isoscope.show.colours import MEASURES as TINTS
from isoscope.show.colours import MODELS, SOFT, sequence
from isoscope.show.draw.matplotlib.style import DASHES, MARKS, NULL, dot, pen, plain
from isoscope.show.figures.panels import KINDS
from isoscope.show.figures.trajectories import spaced
from isoscope.show.measures import Told, title_of
from isoscope.show.panels import TOGETHER
from isoscope.show.readings import LAYERED, SiteReading, at_last, models, unique
from isoscope.show.readings import steps as steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 40
MOST_STEPS = 6
MOST_TICKS = 7


def layers(
    frame: pd.DataFrame,
    measure: str | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a measure along the layers, with intervals and null; `told` is `run.measures`, for its title.

    Several measures of one model at one step share the axes, a colour each.
    """
    several = not (measure is None or isinstance(measure, str))
    curves = _together(frame, list(measure or ()), told) if several else _curves(_readings(frame, measure))
    own = [r for _, _, _, curve in curves for r in curve]
    ax = opened(ax)
    _draw_nulls(ax, curves)
    for name, colour, turn, curve in curves:
        _draw(ax, curve, _deepest(own), colour, turn, name)
    _name_places(ax, own)
    name_values(ax, own, told)
    if several:
        ax.set_ylabel(next((title for title, group in TOGETHER.items() if own[0].measure in group), ""))
    return finished(ax, legend=legend)


Curve = tuple[str, str, int, list[SiteReading]]
"""What a curve is called, its colour, the turn of its mark and dashes, and its readings."""


def _curves(found: list[SiteReading]) -> list[Curve]:
    names, steps = models(found), steps_of([r for r in found if r.known])
    kinds = [kind for kind in KINDS if any(r.kind == kind for r in found)]
    parts: list[tuple[str, str, int, list[SiteReading]]] = []
    if len(names) == 1 and len(steps) > 1:
        shown = spaced(steps, MOST_STEPS)
        for step, pair in zip(shown, sequence(len(shown)), strict=True):
            parts.append((f"step {step:,}", pair[0], 0, [r for r in found if r.step == step]))
    else:
        for i, name in enumerate(names):
            own = at_last([r for r in found if r.model == name])
            parts.append((plain(name), MODELS[i % len(MODELS)][0], i // len(MODELS), own))
    if len(kinds) < 2:
        return [part for part in parts if any(r.known for r in part[3])]
    split = []
    for (name, colour, turn, own), (at, kind) in product(parts, enumerate(kinds)):
        mine = [r for r in own if r.kind == kind]
        label = f"{name}, {KINDS[kind]}" if len(parts) > 1 else KINDS[kind]
        tint = colour if len(parts) > 1 else MODELS[at][0]
        split += [(label, tint, turn + at, mine)] if any(r.known for r in mine) else []
    return split


def _readings(frame: pd.DataFrame, measure: str | Sequence[str] | None) -> list[SiteReading]:
    return readings_of(frame, measure if isinstance(measure, str) else None)


def _together(frame: pd.DataFrame, asked: Sequence[str], told: Told | None) -> list[Curve]:
    """One curve a measure, called as the page calls it beside the others."""
    labels = {m: label for group in TOGETHER.values() for m, label in group.items()}
    found = []
    for i, measure in enumerate(asked):
        own = at_last(one_model(readings_of(frame, measure)))
        own = [r for r in own if r.kind == own[0].kind or r.kind not in KINDS]
        label = labels.get(measure) or title_of(measure, told or {})
        found.append((plain(label), TINTS[i % len(TINTS)][0], i // len(TINTS), own))
    return found


def _deepest(own: Sequence[SiteReading]) -> int:
    return max((r.layer for r in own if r.kind == "layer" and r.layer is not None), default=0)


def _draw(ax: Any, curve: list[SiteReading], deepest: int, colour: str, turn: int, name: str) -> None:
    line = sorted(curve, key=lambda r: r.place)
    x: list[float] = []
    y: list[float] = []
    for before, point in zip([None, *line], line, strict=False):
        if before is not None and before.kind == "layer" != point.kind and before.layer != deepest:
            x, y = [*x, point.place], [*y, math.nan]
        x, y = [*x, point.place], [*y, point.value if point.known else math.nan]
    look = {"color": colour, "lw": pen(), "ls": DASHES[turn % len(DASHES)]}
    mark = MARKS[turn % len(MARKS)] if len(line) <= MOST_BARS else ""
    ax.plot(x, y, marker=mark, ms=dot(), mew=0, label=name, zorder=2, **look)
    bounded = [r for r in line if r.bounded and r.known]
    ends = [r.low for r in bounded], [r.high for r in bounded]
    if bounded and len(line) <= MOST_BARS:
        ax.vlines([r.place for r in bounded], *ends, color=colour, lw=pen(0.9), zorder=2)
    elif bounded:
        ax.fill_between([r.place for r in bounded], *ends, color=colour, alpha=0.2, lw=0)


def _draw_nulls(ax: Any, curves: list[Curve]) -> None:
    """One dashed line where all curves have the same null, else one for each in its colour."""
    lines = [
        (colour, {r.place: r.null for r in curve if math.isfinite(r.null) and r.known})
        for _, colour, _, curve in curves
    ]
    shared: dict[int, float] = {}
    for _, line in lines:
        shared = line | shared
    alike = all(
        math.isclose(null, shared[x], rel_tol=1e-2, abs_tol=1e-9)
        for _, line in lines
        for x, null in line.items()
    )
    for colour, line in [(SOFT[0], shared)] if alike else lines:
        if line:
            x, y = zip(*sorted(line.items()), strict=True)
            mark = "" if len(x) > 1 else "_"
            ax.plot(x, y, marker=mark, ms=dot(4), ls="--", color=colour, lw=pen(0.75), label=NULL, zorder=1)


def _name_places(ax: Any, own: Sequence[SiteReading]) -> None:
    numbered = sorted({r.place for r in own if r.kind in LAYERED})
    after = {r.place: r.site for r in own if r.kind not in LAYERED}
    every = math.ceil(len(numbered) / MOST_TICKS) or 1
    # the last number gives way to the word that stands after it
    ticks = {at: str(at) for at in numbered[::every] if not after or at <= numbered[-1] - every // 2}
    ticks |= after
    ax.set_xticks(list(ticks), list(ticks.values()))
    places = [r.place for r in own]
    room = max(0.5, 0.03 * (max(places) - min(places)))
    ax.set_xlim(min(places) - room, max(places) + room)
    ax.set_xlabel("layer" if numbered else " and ".join(unique(after.values())))
