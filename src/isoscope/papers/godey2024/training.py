"""Claims of training: queries and keys drift along parallel directions, scores grow, attention sharpens.

Read off the Monitor's rows of causal language models by character. Queries and keys of the head whose means
are largest and most parallel are drawn as clouds too, on shared, centred and random axes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import product

import pandas as pd

from isoscope.formatting import listed, short
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, lacking
from isoscope.papers.intervals import by_seed, over, over_seeds, paired
from isoscope.papers.lines import along, curves, dots
from isoscope.papers.workshop import Trained, Workshop
from isoscope.results.points import points_frame
from isoscope.results.reading import Reading
from isoscope.results.store import read_run
from isoscope.results.trajectory import trajectory
from isoscope.show.charts import Chart, Series

MODEL = "characters, causal"
AXES = {"shared": "Shared axes", "centred": "Centred axes", "random": "Random axes"}
NAMES = {"query": "queries", "key": "keys"}
_PULL = ("query_key_cosine", "query_relative_drift", "key_relative_drift")
RARE = 0.05  # a sign that a smaller share of the heads has does not occur
_ALONG = {
    "score_std": ("Std of the scores within rows", (0, math.inf)),
    "normalised_entropy": ("Normalised entropy", (0, 1)),
    "mean_cosine_between": ("Mean cosine between sequences", (-1, 1)),
}
OF_HEADS = ("query_relative_drift", "key_relative_drift", "query_key_cosine", "query_key_product")
OF_SITES = (
    "normalised_entropy", "score_std", "largest_score", "mean_cosine_between", "loss", "query_drift",
    "key_drift",
)  # fmt: skip


def experiment(workshop: Workshop) -> Found:
    """Rows of heads and of sites at every step that was looked at."""
    ended, lost = workshop.train(workshop.along_training(MODEL))
    asked = product(ended, ((True, OF_HEADS), (False, OF_SITES)))
    parts = [each.read(measures, heads=heads, steps="all") for each, (heads, measures) in asked]
    own = workshop.scale.trajectory
    chance = math.sqrt(2 / (math.pi * (own.width // own.heads)))
    rows = pd.concat([*parts, lost], ignore_index=True)
    mine = rows["measure"] == "query_key_cosine"
    return Found(rows.assign(null=rows["null"].where(~mine, chance)), clouds(ended))


def ends(rows: pd.DataFrame, measure: str) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
    """The mean over sites (or heads) of each seed, at the first step and at the last."""
    own = rows[(rows["measure"] == measure) & rows["value"].notna()]
    first, last = (own[own["step"] == step] for step in (own["step"].min(), own["step"].max()))
    return by_seed(first), by_seed(last)


def cosines(rows: pd.DataFrame) -> tuple[Reading, Reading, float]:
    """At the last step: mean |cos(q̄, k̄)| over heads; share of the rarer sign; what chance gives the first."""
    own = rows[(rows["measure"] == "query_key_cosine") & rows["value"].notna() & rows["head"].notna()]
    last = own[own["step"] == own["step"].max()]
    sizes = over_seeds(last.assign(value=last["value"].abs()))
    shares = [
        min((part["value"] > 0).mean(), (part["value"] < 0).mean()) for _, part in last.groupby("revision")
    ]
    return sizes, over([float(share) for share in shares]), float(last["null"].max())


def judge_drift(rows: pd.DataFrame) -> Verdict:
    """Both drifts must grow, q̄ and k̄ be more parallel than chance, and both signs occur."""
    query, key = (paired(*ends(rows, f"{what}_relative_drift")) for what in ("query", "key"))
    size, rarer, chance = cosines(rows)
    parts = [is_above(query, 0), is_above(key, 0), is_above(size, chance), is_above(rarer, RARE)]
    said = (
        f"Along training the relative drift of queries changes by {query.said} and of keys by {key.said}, "
        f"mean over heads; at the end |cos| of mean query and mean key is {size.said} (chance "
        f"{short(chance)}), and the rarer sign has a share of {rarer.said} of the heads."
    )
    return all_of(parts, said + lacking(rows), _peaks(rows))


def _peaks(rows: pd.DataFrame) -> str:
    """When each drift was largest: it need not grow all the way."""
    told = []
    for what, name in NAMES.items():
        own = rows[rows["measure"] == f"{what}_relative_drift"]
        means = own[own["value"].notna()].groupby("step")["value"].mean()
        told.append(f"of {name} at step {means.idxmax()} ({short(float(means.max()))})")
    return f"The relative drift was largest {listed(told)}."


def judge_scores(rows: pd.DataFrame) -> Verdict:
    """Scores must spread, and entropy fall."""
    score, entropy = (paired(*ends(rows, measure)) for measure in ("score_std", "normalised_entropy"))
    said = (
        f"From the first step to the last the std of the scores within rows changes by {score.said} and "
        f"normalised entropy by {entropy.said}, mean over layers."
    )
    return all_of([is_above(score, 0), is_below(entropy, 0)], said + lacking(rows))


def draw_drift(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Drifts along the steps, the cosine of every head, and the clouds of one."""
    rows = _after_none(rows)
    drifts, norms = [], []
    for what, name in NAMES.items():
        drifts.append(along(rows[rows["measure"] == f"{what}_relative_drift"], "step", name, (0, 1)))
        norms.append(along(rows[rows["measure"] == f"{what}_drift"], "step", name))
    own = rows[(rows["measure"] == "query_key_cosine") & rows["value"].notna()]
    own = own[own["revision"] == own["revision"].min()] if len(own) else own
    lines = []
    for (layer, head), part in own.sort_values("step").groupby(["layer", "head"]):
        steps, told = part["step"].astype(float).tolist(), [f"layer {layer}, head {head}"] * len(part)
        lines.append(Series(f"layer {layer}", steps, part["value"].tolist(), style="thin", told=told))
    cosine = "cos(mean query, mean key), every head of one seed"
    return [
        Chart("Relative drift, mean over heads", "step", "", drifts, log_x=True),
        Chart(cosine, "step", "", lines, log_x=True, levels=((0.0, ""),), ordered=True),
        Chart("Norms of the means, mean over layers", "step", "", norms, log_x=True, log_y=True),
        *draw_clouds(points),
    ]


def draw_scores(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Scores and entropy along the steps, a curve a layer; the loss and the mean cosine beside them."""
    rows = _after_none(rows)
    charts = []
    for measure, (title, bounds) in _ALONG.items():
        own = rows[(rows["measure"] == measure) & rows["layer"].notna() & (rows["layer"] > 0)]
        lines = curves(own, "step", "layer", bounds)
        charts.append(Chart(title, "step", "", lines, log_x=True, ordered=True))
    loss = along(rows[rows["measure"] == "loss"], "step", "loss")
    return [*charts, Chart("Loss on what is held out", "step", "nats", [loss], log_x=True)]


def _after_none(rows: pd.DataFrame) -> pd.DataFrame:
    """Without step 0, which has no place on a log axis."""
    return rows[rows["step"].fillna(0) > 0]


def clouds(trainings: Sequence[Trained]) -> pd.DataFrame:
    """Points of one head of the first training, at its first step and at its last."""
    if not trainings:
        return points_frame([])
    run = read_run(trainings[0].folder)
    of = trajectory(run)
    ends = {of.steps[place]: run.points(of.units[place]) for place in (0, -1)}
    both = set.intersection(*(set(zip(part["layer"], part["head"], strict=True)) for part in ends.values()))
    last = of.rows(_PULL, heads=True, only=of.steps[-1:])
    wide = last.pivot_table(index=["layer", "head"], columns="measure", values="value")
    pull = wide.reindex(columns=list(_PULL)).abs().prod(axis=1, skipna=False).dropna()
    ordered = [place for place in pull.sort_values(ascending=False).index if place in both]
    if not ordered:
        return points_frame([])
    layer, head = ordered[0]
    parts = []
    for step, part in ends.items():
        own = part[(part["layer"] == layer) & (part["head"] == head) & part["series"].isin(list(NAMES))]
        parts.append(own.assign(series=[f"{NAMES[name]}, step {step}" for name in own["series"]]))
    return pd.concat(parts, ignore_index=True).drop(columns="unit")


def draw_clouds(points: pd.DataFrame) -> list[Chart]:
    """A chart for each kind of axes; nothing where there are no points."""
    charts = []
    for how, title in AXES.items():
        own = points[points["picture"] == how] if len(points) else points
        if not len(own):
            continue
        layer, head = int(own["layer"].iloc[0]), int(own["head"].iloc[0])
        clouds = [dots(str(name), part, "x", "y") for name, part in own.groupby("series", sort=False)]
        remark = f"layer {layer}, head {head} of one seed; each step has its own axes"
        charts.append(Chart(title, "1st axis", "2nd", clouds, remark=remark, centred=True))
    return charts


_METHOD = (
    "Causal language models by character with pre-norms are trained and looked at along training, on what is "
    "held out: per head the mean query and the mean key, per layer the scores and the entropy. Changes are "
    "from step 0 to the last step, paired by seed."
)
DRIFT_CLAIM = Claim(
    "queries-and-keys", "Queries and keys drift together in training", experiment=experiment,
    judge=judge_drift, draw=draw_drift,
    expected="The mean query and the mean key of a head move away from the origin along parallel directions; "
    "in some heads the same way, in others opposite.",
    method=_METHOD + " Chance is the mean |cos| of two random directions, √(2/(π·dimensions of a head)).",
    reconstructed="The paper shows clouds and histograms of models along training; the numbers that stand "
    "for them here, and what counts as parallel (more than chance), are ours, and so is that a sign occurs "
    f"where more than {RARE:g} of the heads have it. The clouds are of one head, at both ends; those of "
    "every head and step are on the page of each training: `isoscope report` with a folder of `models`.",
    measures=("query_relative_drift", "key_relative_drift", "query_key_cosine"),
)  # fmt: skip
SCORES_CLAIM = Claim(
    "scores-and-entropy", "Scores grow and attention sharpens in training", experiment=experiment,
    judge=judge_scores, draw=draw_scores,
    expected="As queries and keys drift, scores spread and the entropy of attention falls.",
    method=_METHOD,
    measures=("score_std", "normalised_entropy", "mean_cosine_between"),
)  # fmt: skip
