"""Claim: what the drift does to attention is done by the mean query, and by no vector of its size.

Of the drift only q̄·k_j can sharpen: the rest is the same for all keys, and cancels in the softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from isoscope.lab.train.experiment import lesson_of, probe_of
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, lacking, measured
from isoscope.papers.godey2024.arms import ARMS, PUBLIC, trainings
from isoscope.papers.godey2024.drift import replicated
from isoscope.papers.lines import curves, series
from isoscope.papers.workshop import Trained, Workshop
from isoscope.results.row import frame
from isoscope.run.observe.observe import observe
from isoscope.show.charts import Chart

AS_IS, BESIDE = "normalised_entropy", "normalised_entropy_beside_first"
WITHOUT, RANDOM = f"{AS_IS}_without_drift", f"{AS_IS}_without_random"
SINK = ("sink_mass", "sink_mass_without_drift", "sink_mass_without_random")
MEASURES = (AS_IS, WITHOUT, RANDOM, BESIDE, f"{BESIDE}_without_drift", "drift_share", *SINK)


def experiment(workshop: Workshop) -> Found:
    """Attention as it is, without the mean query and without a random vector, in every layer."""
    if workshop.scale.public:
        return Found(workshop.all_observed(PUBLIC, MEASURES))
    ended, lost = workshop.train(trainings(workshop, [arm for arm in ARMS if arm.attends]))
    parts = workshop.side_by_side(partial(read, workshop.device), ended)
    return Found(pd.concat([*parts, lost], ignore_index=True))


def read(device: str, training: Trained) -> pd.DataFrame:
    """The rows of one model at the end of its training, on what was held out."""
    model = training.at(training.experiment.recipe.steps, device)
    held_out = probe_of(lesson_of(training.experiment))
    return training.named(frame(observe(model, held_out, measures=MEASURES).rows()))


def changes(rows: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """One line a model and seed: the mean over layers of second − first, where both are numbers."""
    own = rows[rows["head"].isna() & rows["measure"].isin((first, second))]
    place = ["model", "revision", "kind", "layer"]
    wide = own.pivot_table(index=place, columns="measure", values="value", sort=False)
    wide = wide.reindex(columns=[first, second])
    each = (wide[second] - wide[first]).dropna().rename("value")
    return each.groupby(["model", "revision"], sort=False).mean().reset_index()


def judge(rows: pd.DataFrame) -> Verdict:
    """Entropy must rise without the mean query, and by more than without a random vector."""
    there = measured(rows)
    rise, control = (changes(there, AS_IS, without) for without in (WITHOUT, RANDOM))
    more = rise.merge(control, on=["model", "revision"], suffixes=("", "_random"))
    beyond = more.assign(value=more["value"] - more["value_random"])
    shares = there[(there["measure"] == "drift_share") & there["head"].isna() & there["value"].notna()]
    found = [replicated(part) for part in (rise, control, beyond)]
    by_model = shares.groupby(["model", "revision"])["value"].mean().reset_index()
    said = (
        f"Without the mean query normalised entropy changes by {found[0].said}, without a random vector of "
        f"its norm by {found[1].said}, mean over models and layers; the difference is {found[2].said}. The "
        f"drift's share of the scores' variance is {replicated(by_model).said}."
    )
    verdict = all_of([is_above(found[0], 0), is_above(found[2], 0)], said)
    told = [f"{model} {replicated(part).said}" for model, part in rise.groupby("model", sort=False)]
    details = f"Without the mean query, by model: {'; '.join(told)}."
    return Verdict(verdict.held, verdict.said + lacking(rows), details)


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Drift share by layer; what taking out changes, a model a place; the sink."""
    there = measured(rows)
    own = there[(there["measure"] == "drift_share") & there["head"].isna()]
    return [
        Chart("Drift share by layer", "layer", "", curves(own, "layer", bounds=(0, 1))),
        _taken(there, (AS_IS, WITHOUT, RANDOM), "Normalised entropy without …, less as it is"),
        _taken(there, (BESIDE, f"{BESIDE}_without_drift"), "The same over the keys but the first"),
        _taken(there, SINK, "Sink mass without …, less as it is"),
    ]


def _taken(rows: pd.DataFrame, measures: Sequence[str], title: str) -> Chart:
    first, *others = measures
    lines = []
    for without, name in zip(others, ("the mean query", "a random vector"), strict=False):
        found = changes(rows, first, without)
        each = {str(model): replicated(part) for model, part in found.groupby("model", sort=False)}
        lines.append(series(name, list(each), list(each.values()), "dots"))
    return Chart(title, "", "", [one for one in lines if one.x], levels=((0.0, ""),))


CLAIM = Claim(
    "what-the-drift-does", "What the drift does to attention", experiment=experiment, judge=judge, draw=draw,
    expected="The mean query, the same for every position, carries part of the sharpness: without it "
    "attention is more even, and more so than without a random vector of the same norm.",
    method="In every head of every trained Transformer the scores of the mean query are taken out of the "
    "scores (the layer's input is left as it is), and the rows of attention are read again on at most 64 "
    "sequences. The controls: a random vector in place of the mean query, and the entropy over keys other "
    "than the first. Intervals are over seeds, of public models over models.",
    reconstructed="The paper does not take the drift out; this experiment is isoscope's own.",
    measures=("drift_share", AS_IS, WITHOUT, RANDOM, "sink_mass"),
)  # fmt: skip
