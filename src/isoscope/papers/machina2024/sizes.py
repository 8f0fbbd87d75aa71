"""Claims on size: large models are more isotropic than small ones; and some Transformer is isotropic."""

from __future__ import annotations

import math

import pandas as pd

from isoscope.papers.claims import Claim, Found, Verdict, is_above, is_below, kept, lacking, measured
from isoscope.papers.intervals import correlation, of_row, over_seeds, paired, widened
from isoscope.papers.lines import at_place, curves, series
from isoscope.papers.machina2024.along import along_training
from isoscope.papers.machina2024.arms import CONTRASTS, SIZES
from isoscope.papers.machina2024.drawing import END, drawn, over_steps
from isoscope.papers.machina2024.judging import brief, by_group, concluded, pick, told
from isoscope.papers.machina2024.weighing import I_OWN, I_UNIT, OUTPUT, OUTPUTS, PARAMETERS, TIED
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.show.charts import Chart

COSINE = "mean_cosine_between"
STATES = ("layer", "output")
NEAR = 0.1  # a mean cosine below it is called isotropic here, as above it godey2024 calls it anisotropic


def experiment(workshop: Workshop) -> Found:
    """Hidden states and the output matrix of every model along training."""
    rows, _ = along_training(workshop)
    own = rows["measure"].isin((COSINE, I_OWN, I_UNIT, PARAMETERS, "relative_drift", "loss"))
    return Found(kept(rows, own & rows["kind"].isin((*STATES, *OUTPUTS, "model", "training"))))


def judge_size(rows: pd.DataFrame) -> Verdict:
    """I(W) of the output must rise with size, at unit norm too, and hidden states' mean cosine fall."""
    sizes = _sizes(rows)
    asked = ((OUTPUT, I_OWN), (OUTPUT, I_UNIT), ("output", COSINE))
    matrix, unit, states = (_with_size(pick(rows, *what), sizes) for what in asked)
    names = sorted(sizes, key=lambda name: sizes[name])
    seeded = not set(names) <= set(SIZES)
    how = f"From {names[0]} to {names[-1]}" if seeded and names else "In rank correlation with size"
    said = (
        f"{how} I(W) of the output changes by {matrix.said}, at unit norm by {unit.said}, the mean cosine of "
        f"the last hidden states by {states.said}."
    )
    parts = [is_above(matrix, 0), is_above(unit, 0), is_below(states, 0)]
    return concluded(parts, said, rows, {})


def _sizes(rows: pd.DataFrame) -> dict[str, float]:
    """Parameters of the models that differ in size alone: tied ones and other recipes are left out."""
    own = pick(rows, "model", PARAMETERS)
    others = {*CONTRASTS, *rows.loc[rows["kind"] == TIED, "model"]}
    means = own[~own["model"].isin(others)].groupby("model", sort=False)["value"].mean()
    return {str(model): float(mean) for model, mean in means.items()}


def _with_size(rows: pd.DataFrame, sizes: dict[str, float]) -> Reading:
    """Largest less smallest, paired by seed; of public models the rank correlation with size."""
    own = rows[rows["model"].isin(list(sizes))]
    if set(sizes) <= set(SIZES):
        values = own.groupby("model")["value"].mean()
        names = [name for name in sizes if name in values.index]
        return correlation([math.log(sizes[name]) for name in names], [float(values[name]) for name in names])
    names = sorted(sizes, key=lambda name: sizes[name])
    found = by_group(own)
    return paired(found.get(names[0], {}), found.get(names[-1], {}))


def judge_existence(rows: pd.DataFrame) -> Verdict:
    """Held where one trained model is surely isotropic everywhere, by intervals for as many looks."""
    there = measured(rows)
    found = {}
    for model, own in pick(there, STATES, COSINE).groupby("model", sort=False):
        seeded = own["seed"].notna().all()  # a public model has no seeds: over sequences, of that one place
        largest = over_seeds(own, "max") if seeded else of_row(own.sort_values("value").iloc[-1])
        found[str(model)] = largest
    isotropic = [name for name, each in found.items() if widened(each, len(found)).below(NEAR)]
    none = all(each.above(NEAR) for each in found.values()) and len(there) == len(rows)
    held = True if isotropic else False if none else None
    said = (
        f"In its most anisotropic place a model's mean cosine between sequences is {brief(found)}; surely "
        f"below {NEAR:g} everywhere: {', '.join(isotropic) or 'none'}."
    )
    return Verdict(held, said + lacking(rows), told(found) + "." if found else "")


def draw_size(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Both against size at the end, and the loss that each size came to."""
    sizes = _sizes(rows)
    charts = []
    for title, kind, measure in (
        ("I(W) of the output", OUTPUT, I_OWN), ("The same at unit norm", OUTPUT, I_UNIT),
        ("Mean cosine of the last hidden states", "output", COSINE),
        ("Loss on held-out text", "training", "loss"),
    ):  # fmt: skip
        each = dict(list(pick(rows, kind, measure).groupby("model")))
        there = [name for name in sizes if name in each]
        dots = [series(name, [sizes[name]], [at_place(each[name])], "dots") for name in there]
        charts.append(Chart(title, "parameters", "", dots, log_x=True, remark=END))
    return drawn(*charts)


def draw_existence(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The mean cosine by layer at the end, and along training behind the last norm."""
    own = pick(rows, "layer", COSINE)
    level = ((NEAR, "isotropic below"),)
    return drawn(
        Chart("Mean cosine by layer", "layer", "", curves(own, "layer"), levels=level, remark=END),
        over_steps(rows, "output", COSINE, "Mean cosine behind the last norm"),
        over_steps(rows, "layer", COSINE, "Mean cosine, mean over layers"),
    )


SIZE = Claim(
    "small-against-large", "Large models are more isotropic than small ones", experiment=experiment,
    judge=judge_size, draw=draw_size,
    expected="The large Pythia models are isotropic where the small ones are not: I(W) of the output rises "
    "with size. If anisotropy is one property, that of hidden states falls with it.",
    method="Models of three widths, the same data and steps, the rate as 1/width: largest less smallest, "
    "paired by seed, at the last checkpoint. At the scale full: rank correlation with the number of "
    "parameters over the Pythia sizes.",
    reconstructed="The paper compares sizes by their curves; that hidden states are asked too is ours. The "
    "rate is part of what is compared: with one rate for all widths the widest of the scale laptop learns "
    "least, and its I(W) is the lowest.",
    measures=(I_OWN, COSINE),
)  # fmt: skip
EXISTENCE = Claim(
    "isotropic-transformers", "There are isotropic Transformers", experiment=experiment,
    judge=judge_existence, draw=draw_existence,
    expected="Anisotropy is not inherent: some trained Transformer is isotropic. Asked here of hidden "
    "states, as Godey et al. do: their mean cosine is near its null, 0, in every layer.",
    method="The largest mean cosine between sequences over all layers (what enters the first block and what "
    "leaves the last norm among them) of every trained model, on held-out text; intervals over seeds, of "
    "public models over sequences.",
    reconstructed=f"The paper measures vocabulary matrices. Near the null is a mean cosine below {NEAR:g}.",
    measures=(COSINE,),
)  # fmt: skip
