"""Claim: heads start with no mean to speak of, the less the wider they are; training gives them one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd

from isoscope.formatting import short
from isoscope.lab.train.experiment import lesson_of
from isoscope.models.source import Model
from isoscope.papers.bao2024.models import TASK, swept
from isoscope.papers.bao2024.reading import Look, head_rows, looked, together
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, kept, lacking
from isoscope.papers.intervals import by_seed, over, over_seeds, paired, widened
from isoscope.papers.lines import series
from isoscope.papers.workshop import Trained, Workshop
from isoscope.results.reading import Reading
from isoscope.results.row import frame
from isoscope.show.charts import Chart

STARTS = 12  # seeds of models that are not trained: they cost nothing, and a trace of few heads is noise
KEPT = ("trace", "frobenius", "spectrum_variance", "spectrum_mean", "lean")
TITLES = {
    "trace": "|tr W|, mean over heads", "frobenius": "‖W‖_F, mean over heads",
    "spectrum_variance": "Variance of the eigenvalues", "lean": "|tr W|/2σ",
}  # fmt: skip


def experiment(workshop: Workshop) -> Found:
    """Heads of models of every size, at the start and trained."""
    asked = []
    for size, seed in product(swept(workshop), range(max(STARTS, workshop.seeds))):
        made, arm = workshop.experiment(TASK, seed=seed, size=size), f"heads {size.heads}"
        asked.append(workshop.training(f"width {size.width}, {arm}", made, arm=arm, setting=size.width))
    ended, lost = workshop.train(each for each in asked if each.seed < workshop.seeds)
    looks = [Look(each, (0, each.experiment.recipe.steps), (), workshop.device) for each in ended]
    parts = [rows for rows, _ in looked(workshop, looks)]
    parts += workshop.side_by_side(start, [each for each in asked if each.seed >= workshop.seeds])
    rows = pd.concat([*parts, lost], ignore_index=True)
    return Found(kept(rows, rows["measure"].isin(KEPT)))


def start(training: Trained) -> pd.DataFrame:
    """Rows of the heads of a model before its first step."""
    experiment = training.experiment
    source = Model(experiment.build(lesson_of(experiment)), training.name, step=0)
    rows = frame(head_rows(source, experiment.length))
    return training.named(pd.concat([rows, together(rows)], ignore_index=True))


def judge(rows: pd.DataFrame) -> Verdict:
    """The lean must fall with width at the start, and grow in training, falling at no size."""
    started = rows[rows["step"] == 0]
    several = started[started["arm"] == _of_several_widths(rows)]
    slopes = {name: _slope(several, name) for name in ("lean", "frobenius")}
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
    return all_of(parts, said + lacking(rows), details)


def _of_several_widths(rows: pd.DataFrame) -> str:
    """The arm, a number of heads, that models of several widths have."""
    return str(rows.groupby("arm", sort=False)["setting"].nunique().idxmax())


def _slope(rows: pd.DataFrame, measure: str) -> Reading:
    """The power of the width with which a mean over heads goes, over seeds."""
    found = []
    for _, part in _of(rows, measure).groupby("revision"):
        means = part.groupby("setting")["value"].mean()
        if len(means) > 1:
            found.append(float(np.polyfit(np.log(means.index), np.log(means), 1)[0]))
    return over(found)


def _grown(rows: pd.DataFrame) -> Reading:
    return paired(*(by_seed(_trained(_of(rows, "lean"), really)) for really in (False, True)))


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
    heads = rows.groupby("arm")["head"].max().astype(float) + 1
    own = rows.assign(heads=rows["arm"].map(heads), width=rows["setting"])
    arm, common = _of_several_widths(rows), float(own.drop_duplicates("model")["width"].mode()[0])
    widths, counts = own[own["arm"] == arm], own[own["width"] == common]
    by_width, by_count = f"width, {arm}", f"heads, width {common:g}"
    charts = [_chart(widths, "width", name, by_width) for name in TITLES]
    return charts + [_chart(counts, "heads", name, by_count) for name in list(TITLES)[2:]]


def _chart(rows: pd.DataFrame, column: str, measure: str, across: str) -> Chart:
    own = _of(rows, measure)
    x = sorted(rows[column].unique())
    parts = {"at the start": own[own["step"] == 0], "trained": own[own["step"] > 0]}
    found = {name: [over_seeds(part[part[column] == at]) for at in x] for name, part in parts.items()}
    lines = [series(name, x, each) for name, each in found.items()]
    return Chart(TITLES[measure], across, "", lines, log_x=True, log_y=True)


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
