"""The figure of an impact as a paper prints it: a row a task, a column a site, each repair an arrow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from isoscope.kinds.impact.effects import Effect, is_main, places
from isoscope.show.colours import MODELS
from isoscope.show.draw.matplotlib.style import (
    DASHES,
    KINDS,
    dot,
    folded,
    legend_below,
    pen,
    plain,
    saved,
    style,
)
from isoscope.show.measures import Told, title_of
from isoscope.show.readings import unique

_WIDTH, _HEIGHT = 2.6, 1.9  # inches of a panel
_MOST = 3  # columns
_LETTERS = 34  # of a title's line


def printed(found: Sequence[Effect], told: Told) -> dict[str, bytes]:
    """The figure in every format, by suffix; empty where there is nothing to draw.

    Of more sites than three columns hold the first and the last are drawn, which the page has in between.
    """
    main = [each for each in found if is_main(each.measure) and not math.isnan(each.x[0] + each.after)]
    if not main:
        return {}
    import matplotlib as mpl
    from matplotlib.figure import Figure

    measures, sites = unique(each.measure for each in main), places(main)
    sites = sites if len(sites) <= _MOST else [sites[0], sites[-1]]
    repairs = unique(each.repair for each in main)
    ordered = list(enumerate(repairs, start=1))  # as on the page, where the first is the vectors as they are
    colours = {name: MODELS[i % len(MODELS)][0] for i, name in ordered}
    dashes = {name: DASHES[i // len(MODELS) % len(DASHES)] for i, name in ordered}
    settings: Any = style()  # its names are literals to mypy
    with mpl.rc_context(settings):
        size = (_WIDTH * len(sites), _HEIGHT * len(measures) + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.subplots(len(measures), len(sites), squeeze=False)
        for row, measure in zip(axes, measures, strict=True):
            for axis, site in zip(row, sites, strict=True):
                own = [each for each in main if each.measure == measure and each.place == site]
                _draw(axis, own, colours, dashes)
                if own:
                    title = folded(title_of(measure, told), _LETTERS)
                    axis.set_title(f"{title}\n{own[0].site}", loc="left")
            row[0].set_ylabel("score")
        for axis in axes[-1]:
            axis.set_xlabel("mean cosine")
        legend_below(figure, axes.flat)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once for all formats
        return {kind: saved(figure, kind) for kind in KINDS}


def _draw(axis: Any, own: Sequence[Effect], colours: Mapping[str, str], dashes: Mapping[str, str]) -> None:
    if not own:
        axis.set_axis_off()
        return
    for each in own:
        look = {"color": colours[each.repair], "lw": pen(), "ls": dashes[each.repair]}
        ends = (each.before + each.by.low, each.before + each.by.high)
        axis.vlines(each.x[1], *ends, color=look["color"], lw=pen(0.8), alpha=0.6)
        axis.plot(each.x, (each.before, each.after), label=plain(each.repair), **look)
        head = {"arrowstyle": "-|>,head_width=.18,head_length=.36", "shrinkA": 0, "shrinkB": 0, **look}
        axis.annotate("", xy=(each.x[1], each.after), xytext=(each.x[0], each.before), arrowprops=head)
    axis.plot(own[0].x[0], own[0].before, "o", color=MODELS[0][0], ms=dot(1.2), zorder=5)
