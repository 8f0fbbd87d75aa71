"""Figures for print and notebooks: every function draws on matplotlib axes and returns them.

Each takes rows as `frame()` gives them (or points as `points()` does) and an optional `ax`; without one it
opens a figure of its own. `told` is `run.measures`, for titles as the page has them. Matplotlib is imported
when something is drawn. No file here has the name of a function: once imported it would stand in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from isoscope.kinds.report import figures
from isoscope.plot import experiments, measured, pictures
from isoscope.plot.select import PLACED
from isoscope.show.draw.matplotlib.sheet import Offered, shown
from isoscope.show.draw.matplotlib.style import style
from isoscope.show.figures.step_axis import Changed
from isoscope.show.measures import Told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Offered", "block", "clouds", "contrast", "dots", "eigenvalues", "figures", "heads", "layers",
    "layers_by_steps", "passes", "plane", "propagation", "scatter", "scores", "sites", "stages", "steps",
    "style", "trials",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


def layers(
    frame: pd.DataFrame,
    measure: str | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a measure along the layers, with intervals and null; of one model at several steps a few of them.

    Several measures of one model at one step share the axes, each in its own colour.
    """
    return shown(measured.layers(frame, measure, told), ax, legend=legend)


def steps(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
    changes: Collection[Changed] = (),
    alarms: Collection[int] = (),
) -> Axes:
    """Draw a measure along the steps, with intervals and null: one line per layer, from light to dark.

    `changes` are those of a sweep, `alarms` the steps at which an alarm began.
    """
    return shown(measured.steps(frame, measure, told, changes, alarms), ax, legend=legend)


def heads(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    kind: str | None = None,
    ax: Axes | None = None,
    told: Told | None = None,
) -> Axes:
    """Draw a map of heads, layers down and heads across; of several steps the last, of `kind` one kind."""
    return shown(measured.heads(frame, measure, kind, told), ax, legend=False)


def layers_by_steps(
    frame: pd.DataFrame, measure: str | None = None, *, ax: Axes | None = None, told: Told | None = None
) -> Axes:
    """Draw a map of layers and steps of one measure: one line of cells per layer, the first on top."""
    return shown(measured.layers_by_steps(frame, measure, told), ax, legend=False)


def plane(
    frame: pd.DataFrame,
    *,
    measure: str = "trace",
    length: int | None = None,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the heads of one model by trace and scale of W; `measure` may be `trace_on_data`.

    `length` is the T of the regimes; without it the place of even attention, which hangs on it, is left out.
    """
    return shown(measured.plane(frame, measure, length), ax, legend=legend)


def scatter(
    frame: pd.DataFrame,
    across: str = "relative_drift",
    *,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the mean cosine of every layer against its drift; of several steps the last of each model."""
    return shown(measured.scatter(frame, across, told), ax, legend=legend)


def dots(
    frame: pd.DataFrame,
    measures: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] = PLACED,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw values of one site with intervals and nulls, one line per measure; measures share one axis.

    Of several sites the last is drawn, `output` where there is one.
    """
    return shown(measured.dots(frame, measures, told, kinds), ax, legend=legend)


def sites(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    kinds: Sequence[str] = PLACED,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw one measure at sites side by side, one line per site, such as the matrices of a vocabulary."""
    return shown(measured.sites(frame, measure, told, kinds), ax, legend=legend)


def clouds(
    points: pd.DataFrame,
    layer: int | None = None,
    head: int | None = None,
    *,
    step: int | None = None,
    on: str = "shared",
    kind: str | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the queries and keys of one head, from points as `points()` gives them.

    `on` says on which axes: those that queries and keys share, `centred` or `random` ones. Without layer and
    head it is the head whose means lie furthest from the origin; without a step the last.
    """
    return shown(pictures.cloud(points, layer, head, step=step, on=on, kind=kind), ax, legend=legend)


def eigenvalues(
    points: pd.DataFrame,
    layer: int | None = None,
    head: int | None = None,
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the eigenvalues of W of one head among those of its layer's other heads; equal scales.

    `points` are those of a run of weights; without layer and head it is the first head.
    """
    return shown(pictures.eigenvalues(points, layer, head), ax, legend=legend)


def propagation(
    points: pd.DataFrame,
    layer: int | None = None,
    head: int | None = None,
    *,
    measured: bool = False,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw where the signal of one head passes, by its weights; `measured`: where its last query attends."""
    return shown(pictures.propagation(points, layer, head, measured=measured), ax, legend=legend)


def contrast(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    reference: str | None = None,
    layer: int = 0,
    ax: Axes | None = None,
    told: Told | None = None,
) -> Axes:
    """Draw how every arm differs from the reference, a dot with its 95 % interval, hollow where it holds 0.

    `frame` has the rows of a contrast, `reference` is an arm (else the first), layer 0 the mean over layers.
    """
    fit = experiments.fitted(frame, reference)
    return shown(experiments.differences(fit, measure, told, layer), ax, legend=False)


def trials(
    frame: pd.DataFrame,
    measure: str | None = None,
    *,
    reference: str | None = None,
    layer: int = 0,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw every trial against the entropy of its attention, with the line of each arm.

    The entropies that every arm reached are shaded; that is where arms are compared.
    """
    fit = experiments.fitted(frame, reference)
    return shown(experiments.against_entropy(fit, measure, told, layer), ax, legend=legend)


def block(
    frame: pd.DataFrame,
    measure: str = "normalised_entropy",
    *,
    layer: int = 1,
    ax: Axes | None = None,
    told: Told | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a quantity along the norm of the bias, one curve per norm of the block, with intervals over seeds.

    A measure of vectors is of what leaves the block; with layer 0 of what enters.
    """
    return shown(experiments.along_bias(experiments.summed(frame), measure, told, layer), ax, legend=legend)


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
    return shown(experiments.stages(experiments.summed(frame), norm, measure, told), ax, legend=legend)


def passes(
    frame: pd.DataFrame, norm: str | None = None, *, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Draw mean norms as sequences pass through the block again and again, one curve per bias."""
    return shown(experiments.passes(experiments.summed(frame), norm), ax, legend=legend)


def scores(
    points: pd.DataFrame,
    units: dict[str, str],
    series: str = "score",
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw histograms of the scores, one line per unit: `units` says which, and what each is called.

    `series` is `score`, or `within row`: less the mean of their row.
    """
    return shown(experiments.scores(points, units, series), ax, legend=legend)
