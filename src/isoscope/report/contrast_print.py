"""The figure of a contrast as a paper prints it: vector graphics, one column a quantity, two rows.

Above, every trial against the entropy of its attention, mean over layers, with the line of each arm and the
common range shaded; below, the difference from the reference in its middle with its 95 % interval. Of arms as
they came there are the differences alone, each with the reference's own mean.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from isoscope.report.colours import GRID, INK, MODELS, SOFT
from isoscope.report.families import Told, title_of

FORMATS = ("svg", "pdf")
PRINTED = ("loss", "mean_cosine_between", "relative_drift", "isoscore", "drift_share")
PRINTED_AS_THEY_CAME = (
    "loss",
    "accuracy",
    "probe_accuracy",
    "normalised_entropy",
    "spectrum_variance",
    "propagation_mean",
    "mean_cosine_between",
    "isoscore",
)
_MARKS, _DASHES = ("o", "s", "D"), ("-", "--", ":")
_LETTERS = 22  # of a title's line
_WIDTH, _HEIGHT, _ARM = 1.9, 1.9, 0.17  # inches of a panel, and of an arm below
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 7.5,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": SOFT[0],
    "axes.labelcolor": INK[0],
    "xtick.color": INK[0],
    "ytick.color": INK[0],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "svg.hashsalt": "isoscope",  # the same figure, the same file
}


def printed(
    points: pd.DataFrame, lines: pd.DataFrame, differences: pd.DataFrame, arms: Sequence[str], told: Told
) -> dict[str, bytes]:
    """The figure in every format, by suffix; empty where there is nothing to draw."""
    points, lines, differences = (each[each["layer"] == 0] for each in (points, lines, differences))
    driven = bool((lines["high"] < float("inf")).any()) or lines.empty
    printable = PRINTED if driven else PRINTED_AS_THEY_CAME
    measures = [m for m in printable if points.loc[points["measure"] == m, "value"].notna().any()]
    if not measures:
        return {}
    import matplotlib as mpl
    from matplotlib.figure import Figure

    colours = {arm: MODELS[i % len(MODELS)][0] for i, arm in enumerate(arms)}
    below = 0.5 + _ARM * max(1, len(arms) - 1)
    heights = [_HEIGHT, below] if driven else [below]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH * len(measures) + 0.9, sum(heights) + 0.4), layout="constrained")
        axes: Any = figure.subplots(
            len(heights), len(measures), squeeze=False, height_ratios=heights, sharey=False
        )
        for column, measure in enumerate(measures):
            upper, lower = axes[0][column], axes[-1][column]
            mine, own = points[points["measure"] == measure], lines[lines["measure"] == measure]
            if driven:
                _above(upper, mine, own, colours)
            upper.set_title(textwrap.fill(title_of(measure, told), _LETTERS), loc="left")
            _below(lower, differences[differences["measure"] == measure], arms[1:], colours)
            mean = mine.loc[mine["arm"] == arms[0], "value"].mean()
            lower.set_xlabel(f"difference from {arms[0]}" if driven else f"difference from {mean:.3g}")
            lower.locator_params(axis="x", nbins=4)
            if column:
                lower.set_yticklabels([])
        if driven:
            marks = axes[0][0].get_legend_handles_labels()
            figure.legend(*marks, loc="outside lower center", ncols=min(6, len(arms)), frameon=False)
        else:
            figure.supxlabel(f"the reference is {arms[0]}", fontsize=7.5)
        return {kind: _saved(figure, kind) for kind in FORMATS}


def _above(axis: Any, points: pd.DataFrame, lines: pd.DataFrame, colours: Mapping[str, str]) -> None:
    shared = lines[lines["high"] < float("inf")]
    if len(shared) and shared["low"].max() < shared["high"].min():
        axis.axvspan(shared["low"].max(), shared["high"].min(), color=GRID[0], alpha=0.6, lw=0)
    there = points["entropy"].dropna()
    for number, (arm, colour) in enumerate(colours.items()):
        mine, own = points[points["arm"] == arm], lines[lines["arm"] == arm]
        turn = number // len(MODELS) % len(_MARKS)  # colours come again, marks and dashes do not
        mark, dash = _MARKS[turn], _DASHES[turn]
        axis.plot(mine["entropy"], mine["value"], mark, color=colour, ms=2.4, alpha=0.7, mew=0)
        ends = [there.min(), there.max()]
        if len(own):
            ends = [max(ends[0], own["low"].min()), min(ends[1], own["high"].max())]
        y = [(own["intercept"] + own["slope"] * end).mean() for end in ends]
        axis.plot(ends, y, dash, color=colour, lw=1.1, label=arm, marker=mark, ms=2.4, mew=0, markevery=[])
    axis.set_xlabel("normalised entropy")


def _below(axis: Any, differences: pd.DataFrame, arms: Sequence[str], colours: Mapping[str, str]) -> None:
    axis.axvline(0, color=SOFT[0], lw=0.6, ls="--")
    for place, arm in enumerate(arms):
        for _, line in differences[(differences["arm"] == arm) & differences["value"].notna()].iterrows():
            bounded = pd.notna(line["low"])
            ends = (line["low"], line["high"]) if bounded else (line["least"], line["most"])
            sure = bounded and not ends[0] <= 0 <= ends[1]
            axis.plot(ends, [place, place], color=colours[arm], lw=1.2 if bounded else 0.6)
            face = colours[arm] if sure else "white"
            axis.plot(line["value"], place, "o", color=colours[arm], mfc=face, ms=3.6, mew=0.9)
    axis.set_yticks(range(len(arms)), arms)
    axis.set_ylim(max(1, len(arms)) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)


def _saved(figure: Any, kind: str) -> bytes:
    body = io.BytesIO()
    figure.savefig(body, format=kind, metadata={"Date": None} if kind == "svg" else {"CreationDate": None})
    return body.getvalue()
