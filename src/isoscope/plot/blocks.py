"""An untrained block: quantities along the norm of the bias, stage by stage, pass by pass, and its scores.

A bias N stands at log(1 + N), so that 0 has a place. Means are over seeds, with their t interval from three
seeds on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.plot.axes import finished, opened, titled
from isoscope.show.colours import MODELS, SOFT, sequence
from isoscope.show.draw.matplotlib.charts import write_powers
from isoscope.show.draw.matplotlib.style import dot, folded, pen, plain
from isoscope.show.measures import Told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLOCK = (
    "normalised_entropy", "mean_cosine", "mean_norm", "score_std", "drift_share", "largest_weight",
)  # fmt: skip
_PASSED = "iterated"
_ENDS = {0: "enters", 1: "leaves"}
_LETTERS = 26


def block(
    frame: pd.DataFrame,
    measure: str = "normalised_entropy",
    *,
    layer: int = 1,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a quantity along the norm of the bias, a curve a norm of the block, with intervals over seeds.

    A measure of vectors is of what leaves the block; with layer 0 of what enters.
    """
    lines = summed(frame)
    own = lines[lines["kind"].isin(["layer", "attention"])]
    if measure not in set(own["measure"]):
        raise unknown_name("quantity of this block", measure, set(own["measure"]))
    own = own[(own["measure"] == measure) & (own["layer"] == layer)]
    ax = opened(ax)
    norms = list(map(str, lines["norm"].drop_duplicates()))
    for i, norm in enumerate(norms):
        mine = own[own["norm"] == norm].sort_values("bias")
        _draw(ax, [math.log1p(b) for b in mine["bias"]], mine, MODELS[i % len(MODELS)][0], norm)
    _name_biases(ax, own)
    ax.set_ylabel(folded(f"{titled(measure, told)}{_where(own)}", _LETTERS))
    return finished(ax, legend=legend)


def stages(
    frame: pd.DataFrame,
    norm: str | None = None,
    measure: str = "mean_cosine",
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a quantity at every stage of the block along the norm of the bias, from light to dark."""
    lines = summed(frame)
    norm = _norm(lines, norm)
    every = lines[(lines["measure"] == measure) & ~lines["kind"].isin((_PASSED, "attention"))]
    named = every["kind"].where(every["kind"] != "layer", every["layer"].map(_ENDS)).str.replace("_", " ")
    own = every.assign(stage=named)
    inner = [str(stage) for stage in named.drop_duplicates() if stage not in _ENDS.values()]
    shown = ["enters", *inner, "leaves"]
    colours = dict(zip(shown, sequence(len(shown)), strict=True))  # a stage has one under every norm
    own = own[own["norm"] == norm]
    if own.empty:
        raise unknown_name("quantity of the stages of this block", measure, set(lines["measure"]))
    ax = opened(ax)
    for stage in (stage for stage in shown if (own["stage"] == stage).any()):
        mine = own[own["stage"] == stage].sort_values("bias")
        _draw(ax, [math.log1p(b) for b in mine["bias"]], mine, colours[stage][0], stage)
    _name_biases(ax, own)
    ax.set_ylabel(folded(titled(measure, told), _LETTERS))
    ax.set_title(f"norm: {plain(norm)}", loc="left")
    return finished(ax, legend=legend)


def passes(
    frame: pd.DataFrame, norm: str | None = None, *, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Draw mean norms as sequences pass through the block again and again, a curve a bias."""
    lines = summed(frame)
    own = lines[(lines["kind"] == _PASSED) & (lines["measure"] == "mean_norm")]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: nothing passed through this block more than once.")
    norm = _norm(own, norm)
    own = own[own["norm"] == norm]
    biases = sorted(own["bias"].unique())
    ax = opened(ax)
    for bias, pair in zip(biases, sequence(len(biases)), strict=True):
        mine = own[own["bias"] == bias].sort_values("layer")
        _draw(ax, [float(at) for at in mine["layer"]], mine, pair[0], f"bias {bias:g}")
    if own["value"].min() > 0 and own["value"].max() > 8 * own["value"].min():
        ax.set_yscale("log")
        write_powers(ax.yaxis)
    ax.set(xlabel="passes", ylabel="Mean norm")
    ax.set_title(f"norm: {plain(norm)}", loc="left")
    return finished(ax, legend=legend)


def scores(
    points: pd.DataFrame,
    units: dict[str, str],
    series: str = "score",
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw histograms of the scores, a line a unit: `units` says which are drawn and what each is called.

    `series` is `score`, or `within row`: less the mean of their row.
    """
    own = points[points["unit"].isin(list(units)) & (points["series"] == series)]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: these points hold no histogram of scores.")
    ax = opened(ax)
    for (unit, name), pair in zip(units.items(), sequence(len(units)), strict=True):
        mine = own[own["unit"] == unit]
        ax.step(mine["x"], mine["y"], where="mid", color=pair[0], lw=pen(0.9), label=plain(name))
    ax.axvline(0, color=SOFT[0], lw=pen(0.6), ls="--")
    ax.set_yscale("log")
    write_powers(ax.yaxis)
    ax.set(xlabel="score" if series == "score" else "score less its row’s mean", ylabel="density")
    return finished(ax, legend=legend)


def summed(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, with intervals."""
    from isoscope.lab.block.seeds import over_seeds

    if frame.empty or not frame["value"].notna().any():
        raise IsoscopeError("there is nothing to draw: these rows hold no value of a block.")
    return over_seeds(frame)


def _norm(lines: pd.DataFrame, norm: str | None) -> str:
    there = list(map(str, lines["norm"].drop_duplicates()))
    if norm is not None and norm not in there:
        raise unknown_name("norm in these rows", norm, there)
    return norm or there[0]


def _where(own: pd.DataFrame) -> str:
    """Of what a measure of vectors is."""
    kinds = set(own["kind"])
    return f": what {_ENDS[int(own['layer'].iloc[0])]}" if kinds == {"layer"} else ""


def _draw(ax: Any, x: list[float], own: pd.DataFrame, colour: str, name: str) -> None:
    look = {"color": colour, "lw": pen(), "marker": "o", "ms": dot(), "mew": 0}
    ax.plot(x, own["value"].tolist(), **look, label=plain(name))
    ax.vlines(x, own["low"].tolist(), own["high"].tolist(), color=colour, lw=pen(0.9))


def _name_biases(ax: Any, own: pd.DataFrame) -> None:
    biases = sorted(own["bias"].unique())
    far = math.log1p(biases[-1]) if biases else 1.0
    kept: list[float] = []
    for bias in biases:
        if not kept or math.log1p(bias) - math.log1p(kept[-1]) > 0.1 * far:
            kept.append(bias)
    ax.set_xticks([math.log1p(bias) for bias in kept], [f"{bias:g}" for bias in kept])
    ax.set_xlabel("norm of the bias")
