"""Charts drawn for print: on axes of matplotlib, with its own line width and mark size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from isoscope.formatting import short
from isoscope.show.charts import Axis, Chart, Label, Map, Series
from isoscope.show.colours import ALARM, GRID, INK, SOFT
from isoscope.show.draw.matplotlib.style import dot, folded, pen, plain, small

MOST_BARS = 40
MOST_CELLS = 4000
_MARKS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-right": ">",
    "triangle-left": "<", "cross": "P", "x": "X", "cross-thin": "+", "line-ew": "_", "line-ns": "|",
}  # fmt: skip
_THIN = ("cross-thin", "line-ew", "line-ns")  # marks that are all edge
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}
_TITLE, _X, _Y, _NAME = 40, 34, 26, 32  # letters of a line: titles, names of axes, and of rows
_LETTER, _LINE = 0.026, 0.11  # of a panel: a letter of a level's name, and a line
_BESIDE = 0.6  # of the size of type: the width that a letter of a tick takes


def draw(ax: Any, chart: Chart) -> None:
    """Draw a chart on these axes; its map only where it has no series."""
    if chart.map is not None and not chart.series:
        _draw_map(ax, chart, chart.map)
    else:
        _draw_series(ax, chart)
    ax.set_xlabel(folded(chart.across.name, _X))
    ax.set_ylabel(folded((chart.map.up if chart.map and not chart.series else chart.up).name, _Y))
    if chart.title:
        ax.set_title(folded(chart.title, _TITLE), loc="left")


def _draw_series(ax: Any, chart: Chart) -> None:
    if chart.across.log:
        ax.set_xscale("log")
    if chart.up.log:
        ax.set_yscale("log")
    for ground in chart.grounds:
        look = {"color": ground.colour[0], "alpha": ground.opacity, "lw": 0, "zorder": 0}
        if ground.y:
            ax.fill(ground.x, ground.y, **look)
        else:
            ax.axvspan(ground.x[0], ground.x[-1], **look)
    for at, _ in chart.uprights:
        ax.axvline(at, color=SOFT[0], lw=pen(0.6), ls="--", zorder=1)
        if not chart.filled:
            ax.set_xlim(at - 0.05, at + 0.05)
    for alarm in chart.alarms:
        if alarm.line:
            ax.axvline(alarm.x, color=ALARM[0], lw=pen(0.6), ls=":", label="alarm", zorder=0)
    for one in chart.series:
        _draw_one(ax, one)
    for at, _ in chart.levels:
        ax.axhline(at, color=SOFT[0], lw=pen(0.55), ls="--", zorder=1)
    for label in chart.labels:
        _write(ax, label)
    if chart.equal:
        ax.set_aspect("equal", adjustable="datalim" if chart.up.range is None else "box")
    _name_places(ax, chart)
    _scale(ax, ax.xaxis, chart.across, 4 if chart.up.rows else 5)
    _scale(ax, ax.yaxis, chart.up, 5)
    if chart.up.rows:
        ax.tick_params(axis="y", length=0)
    for at, name in chart.levels:
        _name_level(ax, at, name)


def _draw_one(ax: Any, one: Series) -> None:
    x = [math.nan if at is None else at for at in one.x]
    y = [math.nan if at is None else at for at in one.y]
    colour, label = one.paint, plain(one.name) if one.keyed and one.name else "_"
    if one.style == "band":
        ax.fill_between(x, one.low, one.high, color=colour, lw=0, label=label)
        return
    if one.style == "stack":
        ax.bar(x, y, 0.8, one.base, color=colour, label=label, edgecolor="white", lw=pen(0.3))
        ends = ([a + b for a, b in zip(one.base, side, strict=False)] for side in (one.low, one.high))
        ax.vlines(x[: len(one.low)], *ends, color=INK[0], lw=pen(0.4))
        return
    many = one.style == "curve" and len(x) > MOST_BARS
    thin = one.mark in _THIN
    stroke = {"color": colour, "lw": pen(one.pen / 2), "ls": _DASHES[one.dash] if one.pen else "None"}
    look = {**stroke, "alpha": one.alpha}
    width = pen(1.2 if thin else 0.7) if thin or one.edge or one.hollow else 0
    size = dot(one.dot / (7 if one.style == "dots" else 6))
    marks = {"ms": size, "mew": width, "mec": one.rim, "zorder": 2 if one.pen else 3}
    face = "white" if one.hollow is True else colour
    if one.style == "steps":
        ax.step(x, y, where="mid", label=label, **look)
        return
    mark = _MARKS[one.mark] if one.dot and not many else ""
    ax.plot(x, y, label=label, marker=mark, mfc=face, **look, **marks)
    hollow = [i for i, open_ in enumerate(one.hollows) if open_ and face != "white"]
    if hollow:
        at = [x[i] for i in hollow], [y[i] for i in hollow]
        ax.plot(*at, mark, mfc="white", label="_", color=colour, **{**marks, "zorder": 4})
    _draw_intervals(ax, one, colour, band=many or (one.shaded and len(x) > 1))
    if one.style == "arrow":
        tips = {"xy": (x[-1], y[-1]), "xytext": (x[0], y[0])}
        head = {"arrowstyle": "-|>,head_width=.18,head_length=.36", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", **tips, arrowprops=head | stroke)


def _draw_intervals(ax: Any, one: Series, colour: str, *, band: bool) -> None:
    values = one.x if one.across else one.y
    there = [
        i for i, ends in enumerate(zip(one.low, one.high, values, strict=False))
        if all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
    ]  # fmt: skip
    if band and there:
        known = set(there)
        ends = [[e if i in known else math.nan for i, e in enumerate(side)] for side in (one.low, one.high)]
        x = [math.nan if at is None else at for at in one.x]
        ax.fill_between(x, *ends, color=colour, alpha=0.16, lw=0)
    elif there:
        at, low, high = ([side[i] for i in there]
                         for side in (one.y if one.across else one.x, one.low, one.high))  # fmt: skip
        lines = ax.hlines if one.across else ax.vlines
        lines(at, low, high, color=colour, lw=pen(one.bar / 1.75), alpha=one.alpha, zorder=2)


def _write(ax: Any, one: Label) -> None:
    look = {"fontsize": small(), "color": INK[0], "va": "center", "zorder": 4}
    text = "\n".join(map(plain, one.text.split("\n")))
    if one.x is None:
        ground = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 0.6}
        ax.text(1, one.y, text, ha="right", transform=ax.get_yaxis_transform(), bbox=ground, **look)
    else:
        ax.text(one.x, one.y, text, ha="center", **(look | {"alpha": 0.75, "zorder": 1}))


def _scale(ax: Any, side: Any, axis: Axis, most: int) -> None:
    upright = side is ax.yaxis
    limit = ax.set_ylim if upright else ax.set_xlim
    if axis.range:
        limit(*(10**end for end in axis.range) if axis.log else axis.range)
    elif axis.floor:
        low, high = sorted(side.get_view_interval())
        low = min(low, 0.0)
        limit(low, high + 0.04 * (high - low))
    if axis.zero:
        (ax.axhline if upright else ax.axvline)(0, color=SOFT[0], lw=pen(0.4), alpha=0.5, zorder=0)
    if axis.ticks is not None:
        every = [(at, text) for at, text in axis.ticks if not isinstance(at, str)]
        ticks = every if upright else thinned(every, side)
        side.set_ticks([at for at, _ in ticks], labels=[folded(text, _NAME) for _, text in ticks])
    elif axis.log:
        write_powers(side)
    elif not side.have_units():  # else it has names
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        written = FuncFormatter(lambda value, _: short(value, _digits(side.get_majorticklocs())))
        side.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
        side.set_major_formatter(written)


def _digits(ticks: Sequence[float]) -> int:
    if len(ticks) < 2:
        return 3
    apart, largest = abs(ticks[1] - ticks[0]), max(map(abs, ticks))
    return max(3, math.ceil(math.log10(largest / apart)) + 1)


def thinned(ticks: Sequence[tuple[float, str]], side: Any) -> list[tuple[float, str]]:
    """The ticks of a level axis that have room beside each other: every second, third …, and the last one."""
    low, high = sorted(side.get_view_interval())
    axes = side.axes
    inches = axes.get_window_extent().width / axes.figure.dpi
    letter = _BESIDE * small(1.0) / 72 / max(inches, 0.1) * ((high - low) or 1.0)

    def room(one: tuple[float, str], other: tuple[float, str]) -> bool:
        wide = [max(len(line) for line in text.split("\n")) for _, text in (one, other)]
        return abs(one[0] - other[0]) >= letter * (sum(wide) / 2 + 0.8)

    for every in range(1, len(ticks) + 1):
        kept = list(ticks[::every])
        if kept[-1] != ticks[-1]:
            kept = [*(tick for tick in kept if room(tick, ticks[-1])), ticks[-1]]
        if all(room(one, other) for one, other in pairwise(kept)):
            return kept
    return list(ticks[:1])


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


def _name_places(ax: Any, chart: Chart) -> None:
    """Places side by side are slanted, and have no name where the key says it already."""
    there = chart.places
    if there and set(there) == {one.name for one in chart.series}:
        ax.set_xticks(range(len(there)), [""] * len(there))
    elif there:
        shown = [plain(name, 24) for name in there]
        ax.set_xticks(range(len(there)), shown, rotation=35, ha="right", rotation_mode="anchor")


def _name_level(ax: Any, level: float, name: str) -> None:
    """Write what a level is called at one of its ends, over or under it: where the fewest points are."""
    if not name:
        return
    drawn = [line.get_transform().transform(line.get_xydata()) for line in ax.lines]
    quarters = (0.0, 0.25, 0.5, 0.75)
    between = [one[:-1] + (one[1:] - one[:-1]) * part for one in drawn for part in quarters]
    back = ax.transAxes.inverted()
    points = back.transform(np.concatenate([*between, *(d[-1:] for d in drawn)]))
    points = points[np.isfinite(points).all(axis=1)]
    height = float(back.transform(ax.transData.transform((ax.get_xlim()[0], level)))[1])

    def covered(right: int, under: int) -> float:
        x = 1 - _LETTER * len(name) if right else 0.0
        y = height - _LINE if under else height
        inside = (points[:, 0] >= x) & (points[:, 0] <= x + _LETTER * len(name))
        inside &= (points[:, 1] >= y + 0.01) & (points[:, 1] <= y + _LINE)
        return float(inside.sum()) + 1e6 * (not -0.02 <= y <= 1.05 - _LINE)

    right, under = min(((1, 0), (0, 0), (1, 1), (0, 1)), key=lambda one: covered(*one))
    ax.annotate(
        plain(name), (right, level), xycoords=("axes fraction", "data"), fontsize=small(),
        ha="right" if right else "left", va="top" if under else "bottom",
    )  # fmt: skip


def _draw_map(ax: Any, chart: Chart, of: Map) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    placed = chart.across.range is not None  # on an axis of steps; else cells stand side by side
    cells = np.array(of.cells, float)
    x = _edges(of.x if placed else range(len(of.x)))
    colours = LinearSegmentedColormap.from_list("isoscope", [pair[0] for pair in of.stops])
    ax.set_facecolor(GRID[0])
    mesh = ax.pcolormesh(
        x, _edges(range(len(cells))), np.ma.masked_invalid(cells), cmap=colours, vmin=of.low, vmax=of.high,
        edgecolors="white" if of.apart else "face", linewidth=0.4 if of.apart else 0, antialiased=of.apart,
        rasterized=cells.size > MOST_CELLS,
    )  # fmt: skip
    for cut in of.cuts:
        ax.axhline(cut - 0.5, color="white", lw=pen(1))
    ends = (-0.5, len(cells) - 0.5)
    ax.set(xlim=(x[0], x[-1]), ylim=ends[::-1] if of.up.down else ends)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    across = chart.across.ticks or ()
    places = across if placed else [(list(of.x).index(at), text) for at, text in across]
    ticks = thinned([(float(at), text) for at, text in places], ax.xaxis)
    ax.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    lines = of.up.ticks or ()
    ax.set_yticks([list(of.y).index(at) for at, _ in lines], [plain(text) for _, text in lines])
    for name, pair in of.classes.items():
        ax.plot([], [], "s", color=pair[0], label=name)
    if not of.bar:
        return
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.02, aspect=18)
    bar.set_ticks([at for at, _ in of.bar], labels=[text for _, text in of.bar])
    bar.ax.tick_params(length=0, labelsize=small(0.9))
    bar.outline.set_visible(False)


def _edges(centres: Sequence[Any] | range) -> np.ndarray:
    """Where cells end: half way between their middles."""
    at = np.asarray(list(centres), float)
    half = np.diff(at) / 2 if len(at) > 1 else np.array([0.5])
    return np.concatenate([[at[0] - half[0]], at[:-1] + half[: len(at) - 1], [at[-1] + half[-1]]])
