"""The charts of a claim as a paper prints them: vector graphics, three in a row, the key below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isoscope.formatting import short
from isoscope.show.charts import Chart, Series
from isoscope.show.colours import MODELS, SOFT, sequence
from isoscope.show.draw.matplotlib.style import (
    DASHES,
    FORMATS,
    MARKS,
    dot,
    folded,
    legend_below,
    pen,
    plain,
    saved,
    small,
    style,
)

_ROW = 3
_WIDTH, _HEIGHT = 2.3, 1.9  # inches of a panel
_LETTERS = 34  # of a title's line
_LETTER, _LINE = 0.026, 0.11  # of a panel: a letter of a level's name, and a line
Looks = Mapping[str, tuple[str, int]]
"""Of every series its colour, and the turn in which colours come again."""


def printed(charts: Sequence[Chart]) -> dict[str, bytes]:
    """The figure in every format, by suffix; empty where there is nothing to draw."""
    if not charts:
        return {}
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shared = looks_of(charts)
    columns, lines = min(_ROW, len(charts)), math.ceil(len(charts) / _ROW)
    with mpl.rc_context(style()):
        size = (_WIDTH * columns, _HEIGHT * lines + 0.3)
        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.subplots(lines, columns, squeeze=False)
        for place, axis in enumerate(axes.flat):
            if place < len(charts):
                draw_chart(axis, charts[place], shared)
                axis.set_title(folded(charts[place].title, _LETTERS), loc="left")
            else:
                axis.set_axis_off()
        legend_below(figure, axes.flat)
        return {kind: saved(figure, kind) for kind in FORMATS}


def looks_of(charts: Sequence[Chart]) -> Looks:
    """How series look, by name: alike in all charts that are not ordered."""
    names = dict.fromkeys(one.name for chart in charts if not chart.ordered for one in chart.series)
    return {name: (MODELS[i % len(MODELS)][0], i // len(MODELS)) for i, name in enumerate(names)}


def draw_chart(axis: Any, chart: Chart, shared: Looks) -> None:
    """The series of a chart, its levels and what its axes are called; its title is left to the caller."""
    own = list(dict.fromkeys(one.name for one in chart.series))
    shades = {name: (pair[0], 0) for name, pair in zip(own, sequence(len(own)), strict=True)} if own else {}
    look = shades if chart.ordered else shared
    told: set[str] = set()
    if chart.log_x:
        axis.set_xscale("log")
    if chart.log_y:
        axis.set_yscale("log")
    for one in chart.series:
        _add(axis, one, *look[one.name], label="_" if one.name in told else plain(one.name))
        told.add(one.name)
    for level, _ in chart.levels:
        axis.axhline(level, color=SOFT[0], lw=pen(0.55), ls="--", zorder=1)
    _name_places(axis, [str(x) for one in chart.series for x in one.x if isinstance(x, str)], own)
    for log, side in ((chart.log_x, axis.xaxis), (chart.log_y, axis.yaxis)):
        if log:
            write_powers(side)
    if chart.centred:
        axis.set_xlim(-chart.reach, chart.reach)
        axis.set_ylim(-chart.reach, chart.reach)
    if chart.x == "layer":
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel(folded(chart.x, _LETTERS))
    axis.set_ylabel(folded(chart.y, _LETTERS))
    for level, name in chart.levels:
        _name_level(axis, level, name)


def _name_level(axis: Any, level: float, name: str) -> None:
    """Write what a level is called at one of its ends, over or under it: where the fewest points are."""
    drawn = [line.get_transform().transform(line.get_xydata()) for line in axis.lines]
    quarters = (0.0, 0.25, 0.5, 0.75)
    between = [one[:-1] + (one[1:] - one[:-1]) * part for one in drawn for part in quarters]
    back = axis.transAxes.inverted()
    points = back.transform(np.concatenate([*between, *(d[-1:] for d in drawn)]))
    points = points[np.isfinite(points).all(axis=1)]
    height = float(back.transform(axis.transData.transform((axis.get_xlim()[0], level)))[1])

    def covered(right: int, under: int) -> float:
        x = 1 - _LETTER * len(name) if right else 0.0
        y = height - _LINE if under else height
        inside = (points[:, 0] >= x) & (points[:, 0] <= x + _LETTER * len(name))
        inside &= (points[:, 1] >= y + 0.01) & (points[:, 1] <= y + _LINE)
        return float(inside.sum()) + 1e6 * (not -0.02 <= y <= 1.05 - _LINE)

    right, under = min(((1, 0), (0, 0), (1, 1), (0, 1)), key=lambda one: covered(*one))
    axis.annotate(
        plain(name), (right, level), xycoords=("axes fraction", "data"), fontsize=small(),
        ha="right" if right else "left", va="top" if under else "bottom",
    )  # fmt: skip


def write_powers(side: Any) -> None:
    """Write the ticks of a logarithmic axis as the page does, without formulas; 2 and 5 where it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = sorted(side.get_view_interval())
    decades = math.log10(high / low) if low > 0 else 9.0
    leads = (1, 2, 3, 5) if decades < 1.1 else (1, 2, 5) if decades < 2.2 else (1, 3) if decades < 3 else (1,)
    side.set_major_locator(LogLocator(subs=leads, numticks=8))
    side.set_minor_locator(NullLocator())
    side.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    side.set_minor_formatter(NullFormatter())


def _name_places(axis: Any, names: Sequence[str], own: Sequence[str]) -> None:
    """Places side by side are slanted, and have no name where the key says it already."""
    there = list(dict.fromkeys(names))
    if there and set(there) == set(own):
        axis.set_xticks(range(len(there)), [""] * len(there))
    elif there:
        shown = [plain(name, 24) for name in there]
        axis.set_xticks(range(len(there)), shown, rotation=35, ha="right", rotation_mode="anchor")


def _add(axis: Any, one: Series, colour: str, turn: int, *, label: str) -> None:
    mark, dash = MARKS[turn % len(MARKS)], DASHES[turn % len(DASHES)]
    bounded = any(not math.isnan(end) for end in one.low)
    if one.style == "dots":
        axis.plot(one.x, one.y, mark, color=colour, ms=dot(0.95), mew=0, label=label)
    else:
        thin = one.style == "thin"
        look = {"lw": pen(0.45 if thin else 1.0), "alpha": 0.6 if thin else 1.0, "ls": dash, "color": colour}
        axis.plot(one.x, one.y, label=label, marker=mark if bounded else None, ms=dot(0.95), mew=0, **look)
    if bounded:
        axis.vlines(one.x, one.low, one.high, color=colour, lw=pen(0.8))
