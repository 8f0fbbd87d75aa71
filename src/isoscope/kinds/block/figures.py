"""Charts of an untrained block: along the norm of its bias, stage by stage, pass by pass, and its scores.

They are made from `lines`, one per norm, bias, site and measure: the mean over seeds with its interval. A
bias N stands at log(1 + N), so that 0 has a place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from isoscope.show.charts import Axis, Chart, Series, Told
from isoscope.show.colours import Pair, sequence

PASSED = "iterated"
ENDS = {0: "enters", 1: "leaves"}
SCORES = {"score": "Scores", "within row": "Scores less the mean of their row"}
"""The series of scores, and what each is called."""


def along_bias(own: pd.DataFrame, by: str, colours: Mapping[str, Pair]) -> Chart:
    """Curves along the bias, one for each value of the column `by`, with their intervals over seeds."""
    series = []
    for name, pair in colours.items():
        mine = own[own[by] == name].sort_values("bias")
        if len(mine):
            names = [f"{name}, bias norm {bias:g}" for bias in mine["bias"]]
            series.append(_curve(name, [math.log1p(bias) for bias in mine["bias"]], mine, pair, names))
    ticks = [(math.log1p(bias), f"{bias:g}") for bias in sorted(own["bias"].unique())]
    return Chart("", Axis("norm of the bias", ticks=ticks), Axis(floor=True), series)  # rounding is no curve


def _curve(name: str, x: list[float], own: pd.DataFrame, pair: Pair, names: list[str]) -> Series:
    values, lows, highs, counts = (own[column].tolist() for column in ("value", "low", "high", "n"))
    told = []
    for label, value, low, high, n in zip(names, values, lows, highs, counts, strict=True):
        ends = f"95 % interval {low:.6g} to {high:.6g}, " if not math.isnan(low) else "no interval, "
        told.append(Told(f"{value:.6g}", f"  {label}", [f"{ends}{n} seed{'' if n == 1 else 's'}"]))
    return Series(name, x, values, lows, highs, "curve", told, colour=pair, width=1.8, bar=1.4)


def stages(lines: pd.DataFrame, norm: str, measure: str) -> Chart:
    """One quantity at every stage of the block under a norm, along the bias; from light to dark.

    A stage has one colour under every norm, so that panels can share a key.
    """
    own = lines[(lines["measure"] == measure) & ~lines["kind"].isin((PASSED, "attention"))]
    named = own["kind"].where(own["kind"] != "layer", own["layer"].map(ENDS)).str.replace("_", " ")
    own = own.assign(stage=named)
    inner = [str(stage) for stage in named.drop_duplicates() if stage not in ENDS.values()]
    names = ["enters", *inner, "leaves"]
    colours = dict(zip(names, sequence(len(names)), strict=True))
    return along_bias(own[own["norm"] == norm], "stage", colours)


def passes(lines: pd.DataFrame, norm: str) -> Chart:
    """Mean norms pass by pass under a norm, a curve for each bias."""
    own = lines[(lines["kind"] == PASSED) & (lines["measure"] == "mean_norm") & (lines["norm"] == norm)]
    biases = sorted(own["bias"].unique())
    series = []
    for bias, pair in zip(biases, sequence(len(biases)), strict=True):
        mine, name = own[own["bias"] == bias].sort_values("layer"), f"bias {bias:g}"
        series.append(_curve(name, [float(at) for at in mine["layer"]], mine, pair, [name] * len(mine)))
    there = [float(value) for value in own["value"] if math.isfinite(value)]
    if not there or min(there) <= 0:
        return Chart("", Axis("passes"), Axis(), series)
    ends = math.log10(min(there)) - 0.1, math.log10(max(there)) + 0.1
    return Chart("", Axis("passes"), Axis(range=ends, log=True), series, remark="log scale")


def units_of(facts: Mapping[str, Mapping[str, object]], norm: str) -> dict[str, str]:
    """The units of the first seed under a norm, in order of their bias, and what each is called."""
    own = sorted(
        (float(str(known["bias norm"])), unit)
        for unit, known in facts.items()
        if known.get("norm") == norm and known.get("seed") == 0 and "bias norm" in known
    )
    return {unit: f"bias {bias:g}" for bias, unit in own}


def histograms(points: pd.DataFrame, units: Mapping[str, str], series: str) -> Chart:
    """The histograms of the scores, one per unit: as they are, or less the mean of their row."""
    drawn = []
    for (unit, name), pair in zip(units.items(), sequence(len(units)), strict=True):
        own = points[(points["unit"] == unit) & (points["series"] == series)]
        x, y = own["x"].tolist(), own["y"].tolist()
        drawn.append(Series(name, x, y, style="steps", colour=pair, pattern=Told("", name)))
    return Chart(
        "", Axis("score"), Axis("density", log=True), drawn, uprights=((0.0, ""),), remark="log scale"
    )
