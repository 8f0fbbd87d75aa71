"""An untrained block: quantities along the norm of the bias, stage by stage, pass by pass, and its scores.

Means are over seeds, with their t interval from three seeds on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from isoscope.errors import IsoscopeError, unknown_name
from isoscope.kinds.block import figures
from isoscope.kinds.block.figures import ENDS, PASSED
from isoscope.plot.select import titled
from isoscope.show.charts import Chart, turned
from isoscope.show.draw.matplotlib.sheet import shown
from isoscope.show.measures import Told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLOCK = (
    "normalised_entropy", "mean_cosine", "mean_norm", "score_std", "drift_share", "largest_weight",
)  # fmt: skip


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
    return shown(block_chart(summed(frame), measure, told, layer=layer), ax, legend=legend)


def block_chart(lines: pd.DataFrame, measure: str, told: Told | None, *, layer: int = 1) -> Chart:
    """The chart that `block` draws, of means over seeds."""
    own = lines[lines["kind"].isin(["layer", "attention"])]
    if measure not in set(own["measure"]):
        raise unknown_name("quantity of this block", measure, set(own["measure"]))
    own = own[(own["measure"] == measure) & (own["layer"] == layer)]
    norms = map(str, lines["norm"].drop_duplicates())
    chart = figures.along_bias(own, "norm", {norm: turned(at)[0] for at, norm in enumerate(norms)})
    of = f": what {ENDS[layer]}" if set(own["kind"]) == {"layer"} else ""
    return chart.named(y=f"{titled(measure, told)}{of}")


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
    return shown(stages_chart(summed(frame), norm, measure, told), ax, legend=legend)


def stages_chart(lines: pd.DataFrame, norm: str | None, measure: str, told: Told | None) -> Chart:
    """The chart that `stages` draws, of means over seeds."""
    norm = _norm(lines, norm)
    if not ((lines["measure"] == measure) & ~lines["kind"].isin((PASSED, "attention"))).any():
        raise unknown_name("quantity of the stages of this block", measure, set(lines["measure"]))
    chart = figures.stages(lines, norm, measure, shared=True)
    return chart.named(f"norm: {norm}", titled(measure, told))


def passes(
    frame: pd.DataFrame, norm: str | None = None, *, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Draw mean norms as sequences pass through the block again and again, a curve a bias."""
    return shown(passes_chart(summed(frame), norm), ax, legend=legend)


def passes_chart(lines: pd.DataFrame, norm: str | None = None) -> Chart:
    """The chart that `passes` draws, of means over seeds."""
    own = lines[(lines["kind"] == PASSED) & (lines["measure"] == "mean_norm")]
    if own.empty:
        raise IsoscopeError("there is nothing to draw: nothing passed through this block more than once.")
    norm = _norm(own, norm)
    return figures.passes(lines, norm).named(f"norm: {norm}", "Mean norm")


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
    return shown(scores_chart(points, units, series), ax, legend=legend)


def scores_chart(points: pd.DataFrame, units: dict[str, str], series: str, title: str = "") -> Chart:
    """The chart that `scores` draws."""
    if not (points["unit"].isin(list(units)) & (points["series"] == series)).any():
        raise IsoscopeError("there is nothing to draw: these points hold no histogram of scores.")
    chart = figures.histograms(points, units, series)
    return chart.named(title, x="score" if series == "score" else "score less its row’s mean")


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
