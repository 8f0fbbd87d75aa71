"""The charts of a claim as a paper prints them: vector graphics, three in a row, the key below."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from isoscope.report.charts import Chart, Series
from isoscope.report.colours import INK, MODELS, SOFT, sequence

FORMATS = ("svg", "pdf")
_ROW = 3
_WIDTH, _HEIGHT = 2.3, 1.9  # inches of a panel
_DASHES, _MARKS = ("-", "--", ":"), ("o", "s", "D")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": SOFT[0],
    "axes.labelcolor": INK[0],
    "xtick.color": INK[0],
    "ytick.color": INK[0],
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "svg.hashsalt": "isoscope",  # the same figure, the same file
}


def printed(charts: Sequence[Chart]) -> dict[str, bytes]:
    """The figure in every format, by suffix; empty where there is nothing to draw."""
    if not charts:
        return {}
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = dict.fromkeys(one.name for chart in charts if not chart.ordered for one in chart.series)
    shared = {name: (MODELS[i % len(MODELS)][0], i // len(MODELS)) for i, name in enumerate(names)}
    columns, lines = min(_ROW, len(charts)), math.ceil(len(charts) / _ROW)
    with mpl.rc_context(_STYLE):
        size = (_WIDTH * columns, _HEIGHT * lines + 0.3)
        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.subplots(lines, columns, squeeze=False)
        for place, axis in enumerate(axes.flat):
            if place < len(charts):
                _draw(axis, charts[place], shared)
            else:
                axis.set_axis_off()
        marks = {label: mark for axis in axes.flat for mark, label in zip(*_labels(axis), strict=True)}
        if len(marks) > 1:
            across = min(4, len(marks))
            figure.legend(
                list(marks.values()), list(marks), loc="outside lower center", ncols=across, frameon=False
            )
        return {kind: _saved(figure, kind) for kind in FORMATS}


def _labels(axis: Any) -> tuple[list[Any], list[str]]:
    marks, labels = axis.get_legend_handles_labels()
    return list(marks), list(labels)


def _draw(axis: Any, chart: Chart, shared: Mapping[str, tuple[str, int]]) -> None:
    own = list(dict.fromkeys(one.name for one in chart.series))
    shades = {name: (pair[0], 0) for name, pair in zip(own, sequence(len(own)), strict=True)} if own else {}
    look = shades if chart.ordered else shared
    told: set[str] = set()
    for one in chart.series:
        _add(axis, one, *look[one.name], label="_" if one.name in told else one.name)
        told.add(one.name)
    for level, name in chart.levels:
        axis.axhline(level, color=SOFT[0], lw=0.6, ls="--")
        axis.annotate(
            name, (1, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=6
        )
    if chart.log_x:
        axis.set_xscale("log")
    if chart.log_y:
        axis.set_yscale("log")
    if any(isinstance(x, str) for one in chart.series for x in one.x):
        axis.tick_params(axis="x", rotation=35)
    if chart.centred:
        axis.set_xlim(-chart.reach, chart.reach)
        axis.set_ylim(-chart.reach, chart.reach)
    axis.set_title(textwrap.fill(chart.title, 34), loc="left")
    axis.set_xlabel(chart.x)
    axis.set_ylabel(chart.y)


def _add(axis: Any, one: Series, colour: str, turn: int, *, label: str) -> None:
    mark, dash = _MARKS[turn % len(_MARKS)], _DASHES[turn % len(_DASHES)]
    bounded = any(not math.isnan(end) for end in one.low)
    if one.style == "dots":
        axis.plot(one.x, one.y, mark, color=colour, ms=2.6, mew=0, label=label)
    else:
        thin = one.style == "thin"
        style = {"lw": 0.5 if thin else 1.1, "alpha": 0.6 if thin else 1.0, "ls": dash, "color": colour}
        axis.plot(one.x, one.y, label=label, marker=mark if bounded else None, ms=2.6, mew=0, **style)
    if bounded:
        axis.vlines(one.x, one.low, one.high, color=colour, lw=0.9)


def _saved(figure: Any, kind: str) -> bytes:
    body = io.BytesIO()
    figure.savefig(body, format=kind, metadata={"Date": None} if kind == "svg" else {"CreationDate": None})
    return body.getvalue()
