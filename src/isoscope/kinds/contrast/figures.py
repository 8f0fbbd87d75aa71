"""Charts of a contrast: differences from the reference with their intervals, and the trials behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from isoscope.results.reading import Reading
from isoscope.show.charts import Chart, Ground, Series, Told, turned
from isoscope.show.colours import GRID, Pair
from isoscope.show.figures.curves import Dot, rows_of_changes


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
    return rows_of_changes(arms, dots, "difference")


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
