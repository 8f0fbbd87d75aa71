"""Claim: heads start with no mean to speak of, the less the wider they are; training gives them one."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from isoscope.formatting import short
from isoscope.lab.contrast.trial import lesson_of
from isoscope.lab.train.experiment import Experiment
from isoscope.models.source import Model
from isoscope.papers.bao2024.models import TASK, swept
from isoscope.papers.bao2024.reading import Look, head_rows, looked, together
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, lacking, of_seed
from isoscope.papers.intervals import by_seed, over, over_seeds, paired, widened
from isoscope.papers.lines import series
from isoscope.papers.scales import Size
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.results.row import frame
from isoscope.results.trajectory import FAILED
from isoscope.show.charts import Chart, Series

STARTS = 12  # seeds of models that are not trained: they cost nothing, and a trace of few heads is noise
KEPT = ("trace", "frobenius", "spectrum_variance", "spectrum_mean", "lean")
TITLES = {
    "trace": "|tr W|, mean over heads", "frobenius": "‖W‖_F, mean over heads",
    "spectrum_variance": "Variance of the eigenvalues", "lean": "|tr W|/2σ",
}  # fmt: skip
CALLED = {0: "at the start", 1: "trained"}


def called(size: Size) -> str:
    """An arm.

    >>> called(Size(2, 64, 4, 64, 300, 16, 3e-3, "300"))
    'width 64, heads 4'
    """
    return f"width {size.width}, heads {size.heads}"


def shape_of(model: str) -> tuple[int, int]:
    """The width and the number of heads of an arm.

    >>> shape_of("width 64, heads 4")
    (64, 4)
    """
    width, heads = (int(part.split()[1]) for part in model.split(", "))
    return width, heads


def experiment(workshop: Workshop) -> Found:
    """Heads of models of every size, at the start and trained."""
    every = product(swept(workshop), range(max(STARTS, workshop.seeds)))
    asked = [(called(size), seed, workshop.experiment(TASK, seed=seed, size=size)) for size, seed in every]
    ended, lost = workshop.train(each for each in asked if each[1] < workshop.seeds)
    looks = [
        Look(each.folder, each.name, each.seed, (0, each.experiment.recipe.steps), (), workshop.device)
        for each in ended
    ]
    parts = [rows for rows, _ in looked(workshop, looks)]
    beside = [(name, experiment) for name, seed, experiment in asked if seed >= workshop.seeds]
    parts += workshop.side_by_side(start, beside)
    rows = pd.concat([*parts, lost], ignore_index=True)
    return Found(rows[rows["measure"].isin((*KEPT, FAILED))].reset_index(drop=True))


def start(asked: tuple[str, Experiment]) -> pd.DataFrame:
    """Rows of the heads of a model before its first step."""
    name, experiment = asked
    lesson = lesson_of(experiment.task, experiment.data, experiment.length)
    source = Model(experiment.build(lesson), name, f"seed {experiment.recipe.seed}", step=0)
    rows = frame(head_rows(source, experiment.length))
    return of_seed(pd.concat([rows, together(rows)], ignore_index=True), name, experiment.recipe.seed)


def judge(rows: pd.DataFrame) -> Verdict:
    """The lean must fall with width at the start, and grow in training, falling at no size."""
    started = rows[rows["step"] == 0]
    heads = _heads(rows)
    widths = [model for model in rows["model"].unique() if shape_of(str(model))[1] == heads]
    slopes = {name: _slope(started[started["model"].isin(widths)], name) for name in ("lean", "frobenius")}
    grown = {str(model): _grown(part) for model, part in rows.groupby("model", sort=False)}
    pooled = _grown(rows)
    parts = [is_below(slopes["lean"], 0), is_above(pooled, 0)]
    parts += [Verdict(False, "") for each in grown.values() if widened(each, len(grown)).below(0)]
    told = "; ".join(f"{model} {each.said}" for model, each in grown.items())
    said = (
        f"At the start ‖W‖_F grows with width to the power {slopes['frobenius'].said} (1 for random W) and "
        f"|tr W|/2σ to the power {slopes['lean'].said} (−0.5 for random W). Training changes |tr W|/2σ by "
        f"{pooled.said}, mean over sizes."
    )
    variance = _of(rows, "spectrum_variance")
    logs = variance.assign(value=np.log(variance["value"]))
    wider = paired(*(by_seed(_trained(logs, really)) for really in (False, True)))
    details = (
        f"By size: {told}. The variance of the eigenvalues is multiplied by {short(math.exp(wider.value))} "
        f"[{short(math.exp(wider.low))}, {short(math.exp(wider.high))}], mean over sizes and heads: W grows, "
        "and its mean faster."
    )
    return replace(all_of(parts, said + lacking(rows)), details=details)


def _heads(rows: pd.DataFrame) -> int:
    """The number of heads that several widths have."""
    shapes = [shape_of(str(model)) for model in rows["model"].unique()]
    counts = [heads for _, heads in shapes]
    return max(counts, key=lambda each: len({width for width, heads in shapes if heads == each}))


def _slope(rows: pd.DataFrame, measure: str) -> Reading:
    """The power of the width with which a mean over heads goes, over seeds."""
    own = _of(rows, measure)
    found = []
    for _, part in own.groupby("revision"):
        means = part.groupby("model")["value"].mean()
        if len(means) > 1:
            x = [math.log(shape_of(str(model))[0]) for model in means.index]
            found.append(float(np.polyfit(x, np.log(means.to_numpy(dtype=float)), 1)[0]))
    return over(found)


def _grown(rows: pd.DataFrame) -> Reading:
    own = _of(rows, "lean")
    return paired(by_seed(_trained(own, False)), by_seed(_trained(own, True)))


def _trained(rows: pd.DataFrame, really: bool) -> pd.DataFrame:
    """Rows after training or before, of seeds that were trained."""
    seeds = set(rows.loc[rows["step"] > 0, "revision"])
    return rows[((rows["step"] > 0) == really) & rows["revision"].isin(seeds)]


def _of(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A number of all heads of a model, or of every head (of a trace its size, which has no sign)."""
    own = rows[(rows["measure"] == measure) & rows["value"].notna()]
    own = own if measure == "lean" else own[own["head"].notna()]
    return own.assign(value=own["value"].abs())


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Trace, size, variance and lean against width, then the same against the number of heads."""
    heads = _heads(rows)
    shapes = {str(model): shape_of(str(model)) for model in rows["model"].unique()}
    widths = {model: float(width) for model, (width, count) in shapes.items() if count == heads}
    most = [width for width, _ in shapes.values()]
    common = max(most, key=most.count)
    counts = {model: float(count) for model, (width, count) in shapes.items() if width == common}
    by_width, by_count = f"width, {heads} heads", f"heads, width {common}"
    charts = [_chart(rows, name, title, widths, by_width) for name, title in TITLES.items()]
    return charts + [_chart(rows, name, TITLES[name], counts, by_count) for name in list(TITLES)[2:]]


def _chart(rows: pd.DataFrame, measure: str, title: str, at: dict[str, float], across: str) -> Chart:
    models = sorted(at, key=lambda model: at[model])
    own = _of(rows, measure)
    lines: list[Series] = []
    for number, name in CALLED.items():
        part = own[(own["step"] > 0) == bool(number)]
        found = [over_seeds(part[part["model"] == model]) for model in models]
        lines.append(series(name, [at[model] for model in models], found))
    return Chart(title, across, "", lines, log_x=True, log_y=True)


CLAIM = Claim(
    "width-and-heads", "Training gives W a mean that its random start lacks, whatever the width",
    experiment=experiment, judge=judge, draw=draw,
    expected="Random W have ‖W‖_F in proportion to the width d and tr W to √d, so that |tr W|/2σ falls as "
    "1/√d whatever the number of heads: wide heads start furthest from localising. Training gives "
    "the spectrum a mean: |tr W|/2σ grows.",
    method="Causal language models by character of several widths and numbers of heads, all trained alike; W "
    "of every head before the first step (of more seeds, since a model that is not trained costs nothing) "
    "and after the last. Changes are paired by seed.",
    reconstructed="Which widths and numbers of heads, and that |tr W|/2σ must grow, is ours: it "
    "follows from the theory for random W, and the paper’s own sweep is not available here.",
    measures=("trace", "frobenius", "spectrum_variance", "spectrum_mean"),
)  # fmt: skip
