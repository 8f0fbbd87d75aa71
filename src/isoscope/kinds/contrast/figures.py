"""Charts of a contrast: differences from the reference with their intervals, and the trials behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from isoscope.formatting import short
from isoscope.results.reading import Reading
from isoscope.show.charts import Axis, Chart, Ground, Series, Told, turned
from isoscope.show.colours import GRID, Pair
from isoscope.show.figures.curves import Dot, rows_of_dots
from isoscope.show.measures import Told as Titles
from isoscope.show.measures import title_of

PRINTED = ("loss", "mean_cosine_between", "relative_drift", "isoscore", "drift_share")
PRINTED_AS_THEY_CAME = (
    "loss", "accuracy", "probe_accuracy", "normalised_entropy", "spectrum_variance", "propagation_mean",
    "mean_cosine_between", "isoscore",
)  # fmt: skip
_WIDTH, _HEIGHT, _ARM = 1.9, 1.9, 0.17  # inches of a printed panel, and of an arm
_ROW, _ENDS = 24, 64  # pixels of an arm in a panel of differences, and of the axis below


def is_driven(lines: pd.DataFrame) -> bool:
    """Whether arms were driven to entropies, and not compared as they came."""
    return bool((lines["high"] < math.inf).any()) or lines.empty


def colours_of(arms: Sequence[str]) -> dict[str, Pair]:
    """The colour of every arm."""
    return {arm: turned(at)[0] for at, arm in enumerate(arms)}


def differences_chart(own: pd.DataFrame, arms: Sequence[str], colours: Mapping[str, Pair]) -> Chart:
    """One quantity: a dot per arm, hollow where its interval holds 0; else with the spread of its seeds."""
    dots = []
    for _, line in own[own["value"].notna() & own["arm"].isin(list(arms))].iterrows():
        bounded = pd.notna(line["low"])
        low, high = (line["low"], line["high"]) if bounded else (line["least"], line["most"])
        sure = bounded and not low <= 0 <= high
        arm, bar = str(line["arm"]), 1.6 if bounded else 0.8
        dots.append(
            Dot(arms.index(arm), arm, Reading(line["value"], line["n"], low=low, high=high), colours[arm],
                telling(line), hollow=not sure, bar=bar)
        )  # fmt: skip
    left = int(min(17 + 6.6 * max(map(len, arms), default=0), 170))
    margin = {"l": left, "r": 12, "t": 8, "b": 40}
    axis = Axis("difference", most=6)
    return rows_of_dots(arms, dots, axis, size=9, height=_ENDS + _ROW * len(arms), margin=margin, zero=True)


def telling(line: pd.Series) -> Told:
    """The hover text of a difference."""
    sure = pd.notna(line["low"])
    ends = (line["low"], line["high"]) if sure else (line["least"], line["most"])
    seeds = f"{line['n']} seed{'' if line['n'] == 1 else 's'}"
    lines = [
        f"{'95 % interval' if sure else 'seeds lie from'} {ends[0]:.6g} to {ends[1]:.6g}",
        seeds if pd.isna(line["at"]) else f"{seeds}, at an entropy of {line['at']:.3f}",
    ]
    return Told(
        f"{line['value']:.6g}", f"  {line['arm']}", [*lines, *([line["note"]] if line["note"] else [])]
    )


def trials_chart(points: pd.DataFrame, lines: pd.DataFrame, arms: Sequence[str]) -> Chart:
    """One quantity of one layer: points are trials, a line is the mean over the seeds of an arm.

    The entropies that every arm reached are shaded. Arms as they came have points and no lines.
    """
    x = points["entropy"].dropna()
    least, most = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    shared = lines[lines["high"] < math.inf]
    grounds = []
    if len(shared) and shared["low"].max() < shared["high"].min():
        grounds = [Ground((shared["low"].max(), shared["high"].min()), (), GRID, 0.45)]
    series = []
    for at, arm in enumerate(arms):
        own, (pair, mark, dash) = lines[lines["arm"] == arm], turned(at)
        if len(own) and len(shared):
            ends = [max(least, own["low"].min()), min(most, own["high"].max())]
            y = [float((own["intercept"] + own["slope"] * end).mean()) for end in ends]
            series.append(Series(arm, ends, y, colour=pair, dash=dash, width=1.8))
        mine = points[(points["arm"] == arm) & points["entropy"].notna() & points["value"].notna()]
        told = [
            Told(f"{value:.6g}", f" at an entropy of {entropy:.3f}", [f"{arm}, seed {seed}"])
            for value, entropy, seed in zip(mine["value"], mine["entropy"], mine["seed"], strict=True)
        ]
        at_entropy = mine["entropy"].tolist(), mine["value"].tolist()
        series.append(Series(arm, *at_entropy, style="dots", told=told, colour=pair, mark=mark, size=5))
    return Chart("", "normalised entropy, measured", "", series, grounds=grounds)


def printable(points: pd.DataFrame, driven: bool) -> list[str]:
    """The quantities of the printed figure that have a value."""
    asked = PRINTED if driven else PRINTED_AS_THEY_CAME
    return [m for m in asked if points.loc[points["measure"] == m, "value"].notna().any()]


def difference_from(reference: str, mean: float | None) -> str:
    """The name of the axis of differences, with the arm that they are taken from where it is given."""
    return f"difference from {reference}" if mean is None else f"difference from {short(mean)}"


def printed_contrast(
    points: pd.DataFrame, lines: pd.DataFrame, differences: pd.DataFrame, arms: Sequence[str], told: Titles
) -> dict[str, bytes]:
    """The figure as a paper prints it, in every format by suffix: one column a quantity, two rows.

    Above, every trial against the entropy of its attention, mean over layers; below, the difference from the
    reference. Of arms as they came there are the differences alone, each with the reference's own mean.
    """
    from isoscope.show.draw.matplotlib.sheet import printed

    points, lines, differences = (each[each["layer"] == 0] for each in (points, lines, differences))
    driven = is_driven(lines)
    upper: list[Chart] = []
    lower: list[Chart] = []
    for measure in printable(points, driven):
        mine, title = points[points["measure"] == measure], title_of(measure, told)
        trials = trials_chart(mine, lines[lines["measure"] == measure], arms)
        upper.append(replace(trials, x="normalised entropy").named(title))
        mean = float(mine.loc[mine["arm"] == arms[0], "value"].mean())
        own = differences_chart(differences[differences["measure"] == measure], arms[1:], colours_of(arms))
        ticks = [(at, "" if lower else name) for at, name in own.up.ticks or ()]  # the first names all
        own = replace(own, y=replace(own.up, ticks=ticks))
        lower.append(own.named("" if driven else title, x=difference_from(arms[0], None if driven else mean)))
    below = 0.5 + _ARM * max(1, len(arms) - 1)
    return printed(
        [upper, lower] if driven else [lower],
        (_WIDTH, _HEIGHT),
        heights=[_HEIGHT, below] if driven else [below],
        more=(0.9, 0.4),
        below="" if driven else f"the reference is {arms[0]}",
    )
