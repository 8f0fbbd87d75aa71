"""Claim: the two titles speak of one thing, so hidden states are isotropic where the vocabulary is."""

from __future__ import annotations

import pandas as pd

from isoscope.papers.claims import Claim, Found, Verdict, is_below, kept
from isoscope.papers.intervals import correlation
from isoscope.papers.lines import dots
from isoscope.papers.machina2024.along import along_training
from isoscope.papers.machina2024.drawing import drawn, over_steps
from isoscope.papers.machina2024.judging import brief, concluded, every, levels, pick
from isoscope.papers.machina2024.weighing import I_OWN, INPUT, OUTPUTS
from isoscope.papers.workshop import Workshop
from isoscope.show.charts import Chart

COSINE = "mean_cosine"


def experiment(workshop: Workshop) -> Found:
    """Both papers' numbers of the same models at the same steps."""
    rows, _ = along_training(workshop)
    states = (rows["measure"] == COSINE) & rows["kind"].isin(("layer", "output"))
    matrices = (rows["measure"] == I_OWN) & rows["kind"].isin((*OUTPUTS, INPUT))
    return Found(kept(rows, states | matrices))


def followed(rows: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over steps of the hidden states' A with the output's I(W), a row a training."""
    found = []
    for (model, revision), own in _both(rows).groupby(["model", "revision"], sort=False):
        value = correlation(own["value"].tolist(), own["value_matrix"].tolist()).value
        found.append({"model": model, "revision": revision, "seed": own["seed"].iloc[0], "value": value})
    return pd.DataFrame(found, columns=["model", "revision", "seed", "value"])


def _both(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the last hidden states' mean cosine, each beside the output's I(W) at the same step."""
    states, matrix = pick(rows, "output", COSINE, "all"), pick(rows, OUTPUTS, I_OWN, "all")
    return states.merge(matrix, on=["model", "revision", "step"], suffixes=("", "_matrix"))


def judge(rows: pd.DataFrame) -> Verdict:
    """A must be low where I(W) is high, along training: their rank correlation below 0."""
    found = levels(followed(rows))
    states, matrices = levels(pick(rows, "output", COSINE)), levels(pick(rows, OUTPUTS, I_OWN))
    said = (
        f"Along training the rank correlation of the hidden states' mean cosine with the output's I(W) is "
        f"{brief(found)}. At the end the mean cosine is {brief(states)}, and I(W) {brief(matrices)}."
    )
    more = {"Correlation": found, "Mean cosine at the end": states, "I(W) at the end": matrices}
    return concluded(every((found,), is_below, 0), said, rows, more)


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Paper A's number, this paper's of both matrices, and the one against the other."""
    axes = ("I(W) of the output", "mean cosine of hidden states")
    inherent = "“Anisotropy is inherent”: hidden states"
    clouds = []
    for model, own in _both(rows).groupby("model", sort=False):
        means = own.groupby("step")[["value", "value_matrix"]].mean().reset_index()
        clouds.append(dots(str(model), means, "value_matrix", "value", "step {step}"))
    return drawn(
        over_steps(rows, "output", COSINE, inherent, "mean cosine, last norm"),
        over_steps(rows, OUTPUTS, I_OWN, "“… is not inherent”: I(W) of the output", "I(W)"),
        over_steps(rows, INPUT, I_OWN, "I(W) of the input", "I(W)"),
        over_steps(rows, "layer", COSINE, "Mean cosine, mean over layers"),
        Chart("One against the other, a dot a checkpoint", *axes, clouds, remark="mean over seeds"),
    )


CLAIM = Claim(
    "both-titles", "Both titles side by side", experiment=experiment, judge=judge, draw=draw,
    expected="The title answers that of Godey et al., as though both spoke of one property: then hidden "
    "states are isotropic where the vocabulary is, and along training their mean cosine falls where I(W) "
    "rises.",
    method="The mean cosine of the last hidden states (that paper's number) and I(W) of the output (this "
    "paper's), of the same models at the same checkpoints: Spearman's correlation over steps, one a seed; "
    "intervals over seeds, of public models over models.",
    reconstructed="The comparison is ours: neither paper measures what the other does.",
    measures=(COSINE, I_OWN),
)  # fmt: skip
