"""One measure along the steps, for print: a line a layer from the first (light) to the last (dark).

Decided here: intervals are pale bands behind their lines; the null is dashed where all layers have nearly the
same one. Of more than `MOST_LINES` layers so many are drawn, on a band from the least to the largest of all.
A step without a value is a gap. Change points are marks on the bar of their interval, and steps at which an
alarm began are dotted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from isoscope.show.colours import ALARM, GRID, INK, SOFT
from isoscope.show.draw.matplotlib.style import NULL, dot, pen
from isoscope.show.figures.panels import range_of
from isoscope.show.figures.step_axis import Changed, StepAxis
from isoscope.show.figures.trajectories import MOST_LINES, Depths, spaced
from isoscope.show.readings import SiteReading

SYMBOLS = {"jump": "D", "turn": "^"}
_ALIKE = 0.03  # of the axis: nulls that differ by less are one line
_MARKED = 12  # up to so many steps a line has a mark at each


def draw_lines(
    axes: Any,
    own: Sequence[SiteReading],
    axis: StepAxis,
    places: Depths,
    changes: Iterable[Changed] = (),
    alarms: Iterable[int] = (),
) -> None:
    """Lines of one measure, their intervals, null, changes and alarms; the axis of values is not touched."""
    own = [r for r in own if r.step in axis.steps]
    sites = sorted({r.place for r in own})
    lined = spaced(sites, MOST_LINES)
    for step in alarms:
        axes.axvline(axis.at(step), color=ALARM[0], lw=pen(0.6), ls=":", label="alarm", zorder=0)
    if len(lined) < len(sites):
        _draw_band(axes, own, axis)
    _draw_null(axes, [r for r in own if r.known], axis)
    named = dict(places.key)
    for place in lined:
        line = sorted((r for r in own if r.place == place), key=lambda r: r.step or 0)
        own_number = line[0].kind == "training"  # of the loop, at no layer
        colour = INK[0] if own_number else places.colours[place][0]
        name = "" if own_number else places.names.get(place, "")
        _draw_line(axes, line, axis, colour, name if name in named else "_")
        _draw_changes(axes, line, axis, colour, changes)
    _draw_steps(axes, axis)


def _draw_line(axes: Any, line: list[SiteReading], axis: StepAxis, colour: str, label: str) -> None:
    x = [axis.at(r.step or 0) for r in line]
    mark = "o" if len(axis.steps) <= _MARKED else ""
    y = [r.value if r.known else math.nan for r in line]
    axes.plot(x, y, marker=mark, color=colour, lw=pen(0.85), ms=dot(0.75), mew=0, label=label)
    if any(r.bounded for r in line):
        ends = [(r.low, r.high) if r.bounded else (math.nan, math.nan) for r in line]
        low, high = zip(*ends, strict=True)
        if len(line) > 1:
            axes.fill_between(x, low, high, color=colour, alpha=0.16, lw=0)
        else:
            axes.vlines(x, low, high, color=colour, lw=pen(0.8))


def _draw_band(axes: Any, own: list[SiteReading], axis: StepAxis) -> None:
    values = {step: [r.value for r in own if r.step == step and r.known] for step in axis.steps}
    shown = [step for step in axis.steps if values[step]]
    ends = [[pick(values[step]) for step in shown] for pick in (min, max)]
    axes.fill_between([axis.at(step) for step in shown], *ends, color=GRID[0], lw=0, label="all layers")


def _draw_null(axes: Any, own: list[SiteReading], axis: StepAxis) -> None:
    nulls = {step: [r.null for r in own if r.step == step and math.isfinite(r.null)] for step in axis.steps}
    shown = [step for step in axis.steps if nulls[step]]
    if not shown:
        return
    low, high = range_of(own, False)
    if any(max(nulls[step]) - min(nulls[step]) > _ALIKE * (high - low) for step in shown):
        return
    mean = [sum(nulls[step]) / len(nulls[step]) for step in shown]
    mark = "" if len(shown) > 1 else "_"
    x = [axis.at(step) for step in shown]
    axes.plot(x, mean, marker=mark, ls="--", color=SOFT[0], lw=pen(0.8), ms=dot(4), label=NULL, zorder=1)


def _draw_changes(
    axes: Any, line: list[SiteReading], axis: StepAxis, colour: str, changes: Iterable[Changed]
) -> None:
    at = {r.step: r.value for r in line if r.known}
    for change in changes:
        if (change.kind, change.layer) == (line[0].kind, line[0].layer) and change.step in at:
            y = at[change.step]
            ends = [axis.at(change.low), axis.at(change.high)]
            axes.plot(ends, [y, y], color=INK[0], lw=pen(2.2), alpha=0.3, solid_capstyle="butt")
            mark = {"color": colour, "ms": dot(1.2), "mec": INK[0], "mew": pen(0.45), "ls": ""}
            axes.plot(axis.at(change.step), y, marker=SYMBOLS[change.what], **mark, label=change.what)


def _draw_steps(axes: Any, axis: StepAxis) -> None:
    ticks = spaced(axis.ticks(), 5)
    axes.set_xticks([axis.at(step) for step in ticks], [f"{step:,}" for step in ticks])
    axes.set_xlim(*axis.range)
    axes.set_xlabel("step, log scale" if axis.log else "step")
