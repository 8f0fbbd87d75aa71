"""The figure of a contrast as a paper prints it: vector graphics, one column a quantity, two rows.

Above, every trial against the entropy of its attention, mean over layers, with the line of each arm and the
common range shaded; below, the difference from the reference in its middle with its 95 % interval. Of arms as
they came there are the differences alone, each with the reference's own mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from isoscope.formatting import short
from isoscope.show.colours import GRID, MODELS, SOFT
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
from isoscope.show.measures import Told, title_of

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
_LETTERS = 22  # of a title's line
_WIDTH, _HEIGHT, _ARM = 1.9, 1.9, 0.17  # inches of a panel, and of an arm below


def printed(
    points: pd.DataFrame, lines: pd.DataFrame, differences: pd.DataFrame, arms: Sequence[str], told: Told
) -> dict[str, bytes]:
    """The figure in every format, by suffix; empty where there is nothing to draw."""
    points, lines, differences = (each[each["layer"] == 0] for each in (points, lines, differences))
    driven = is_driven(lines)
    measures = printable(points, driven)
    if not measures:
        return {}
    import matplotlib as mpl
    from matplotlib.figure import Figure

    colours = colours_of(arms)
    below = 0.5 + _ARM * max(1, len(arms) - 1)
    heights = [_HEIGHT, below] if driven else [below]
    with mpl.rc_context(style()):
        figure = Figure(figsize=(_WIDTH * len(measures) + 0.9, sum(heights) + 0.4), layout="constrained")
        axes: Any = figure.subplots(
            len(heights), len(measures), squeeze=False, height_ratios=heights, sharey=False
        )
        for column, measure in enumerate(measures):
            upper, lower = axes[0][column], axes[-1][column]
            mine, own = points[points["measure"] == measure], lines[lines["measure"] == measure]
            if driven:
                draw_trials(upper, mine, own, colours)
            upper.set_title(folded(title_of(measure, told), _LETTERS), loc="left")
            draw_differences(lower, differences[differences["measure"] == measure], arms[1:], colours)
            mean = mine.loc[mine["arm"] == arms[0], "value"].mean()
            lower.set_xlabel(difference_from(arms[0], None if driven else mean))
            if column:
                lower.set_yticklabels([])
        if driven:
            legend_below(figure, axes[0])
        else:
            figure.supxlabel(f"the reference is {plain(arms[0])}", fontsize=small(1.0))
        return {kind: saved(figure, kind) for kind in FORMATS}


def is_driven(lines: pd.DataFrame) -> bool:
    """Whether arms were driven to entropies, and not compared as they came."""
    return bool((lines["high"] < float("inf")).any()) or lines.empty


def printable(points: pd.DataFrame, driven: bool) -> list[str]:
    """The quantities that are printed, of those that have a value."""
    asked = PRINTED if driven else PRINTED_AS_THEY_CAME
    return [m for m in asked if points.loc[points["measure"] == m, "value"].notna().any()]


def colours_of(arms: Sequence[str]) -> dict[str, str]:
    """The colour of every arm."""
    return {arm: MODELS[i % len(MODELS)][0] for i, arm in enumerate(arms)}


def difference_from(reference: str, mean: float | None) -> str:
    """What differences are told from: an arm, or where that is told elsewhere its mean."""
    return f"difference from {plain(reference, 24)}" if mean is None else f"difference from {short(mean)}"


def draw_trials(axis: Any, points: pd.DataFrame, lines: pd.DataFrame, colours: Mapping[str, str]) -> None:
    """Every trial against its entropy, the line of each arm, and the range they share shaded."""
    shared = lines[lines["high"] < float("inf")]
    if len(shared) and shared["low"].max() < shared["high"].min():
        axis.axvspan(shared["low"].max(), shared["high"].min(), color=GRID[0], alpha=0.6, lw=0)
    there = points["entropy"].dropna()
    for number, (arm, colour) in enumerate(colours.items()):
        mine, own = points[points["arm"] == arm], lines[lines["arm"] == arm]
        turn = number // len(MODELS) % len(MARKS)
        mark, dash, size = MARKS[turn], DASHES[turn], dot(0.9)
        axis.plot(mine["entropy"], mine["value"], mark, color=colour, ms=size, alpha=0.7, mew=0)
        ends = [there.min(), there.max()]
        if len(own):
            ends = [max(ends[0], own["low"].min()), min(ends[1], own["high"].max())]
        y = [(own["intercept"] + own["slope"] * end).mean() for end in ends]
        axis.plot(
            ends, y, dash, color=colour, lw=pen(), label=plain(arm), marker=mark, ms=size, mew=0,
            markevery=[],
        )  # fmt: skip
    axis.set_xlabel("normalised entropy")


def draw_differences(
    axis: Any, differences: pd.DataFrame, arms: Sequence[str], colours: Mapping[str, str]
) -> None:
    """A dot an arm with its interval, hollow where that holds 0; where there is none, the seeds' spread."""
    axis.axvline(0, color=SOFT[0], lw=pen(0.6), ls="--")
    for place, arm in enumerate(arms):
        for _, line in differences[(differences["arm"] == arm) & differences["value"].notna()].iterrows():
            bounded = pd.notna(line["low"])
            ends = (line["low"], line["high"]) if bounded else (line["least"], line["most"])
            sure = bounded and not ends[0] <= 0 <= ends[1]
            axis.plot(ends, [place, place], color=colours[arm], lw=pen(1.1 if bounded else 0.55))
            face = colours[arm] if sure else "white"
            axis.plot(line["value"], place, "o", color=colours[arm], mfc=face, ms=dot(1.3), mew=pen(0.8))
    axis.set_yticks(range(len(arms)), [plain(arm) for arm in arms])
    axis.set_ylim(max(1, len(arms)) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.locator_params(axis="x", nbins=4)
