"""Claims: attention falls where W says that signal passes; and the premise, that inputs walk at random."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import pandas as pd

from isoscope.papers.bao2024.models import DEEP, DEEP_LOCATER, deep
from isoscope.papers.bao2024.reading import PUBLIC, at_end, beside, looked, public, with_public
from isoscope.papers.claims import Claim, Found, Verdict, is_above, kept
from isoscope.papers.intervals import by_seed, over, over_seeds, paired
from isoscope.papers.lines import curves, dots
from isoscope.papers.workshop import Workshop
from isoscope.results.points import points_frame
from isoscope.show.charts import Chart, Series

AGREEMENTS = ("propagation_agreement", "softmax_agreement")
WALKS = 0.5  # the slope above which inputs are nearer to a walk (1) than to staying where they are (0)
CURVES = {"predicted": "ρ(t), predicted", "softmax": "attention of a walk", "measured": "attention, measured"}


def experiment(workshop: Workshop, measures: Sequence[str]) -> Found:
    """Heads at the end of training, with and without LocAteR, and of public models; curves of agreement."""
    pairs = product(range(workshop.seeds), ((DEEP, False), (DEEP_LOCATER, True)))
    asked = (workshop.training(name, deep(workshop, seed, narrow=narrow)) for seed, (name, narrow) in pairs)
    ended, lost = workshop.train(asked)
    found = looked(workshop, [at_end(each, workshop.device) for each in ended])
    rows = pd.concat([*(each for each, _ in found), lost, public(workshop)], ignore_index=True)
    curves = found[0][1] if found and AGREEMENTS[0] in measures else points_frame([])
    curves = curves[curves["picture"] == "propagation"].reset_index(drop=True)
    return Found(kept(rows, rows["measure"].isin(measures)), curves)


def excess(rows: pd.DataFrame) -> pd.DataFrame:
    """Heads whose value is the agreement with their own prediction less that with others’."""
    own = rows[(rows["measure"] == AGREEMENTS[0]) & rows["head"].notna() & rows["value"].notna()]
    return own.assign(value=own["value"] - own["null"])[own["null"].notna()]


def judge(rows: pd.DataFrame) -> Verdict:
    """A head’s own prediction must agree better than those of the other heads of its layer."""
    own = rows[rows["model"] == DEEP]
    found: list[Verdict] = []
    said = details = ""
    if len(own):
        more = over_seeds(excess(own))
        found.append(is_above(more, 0))
        heads = own[own["head"].notna()]
        plain, true = (heads[heads["measure"] == measure] for measure in AGREEMENTS)
        narrow = over_seeds(excess(rows[rows["model"] == DEEP_LOCATER]))
        said = (
            "Measured attention agrees with ρ(t) of the head’s own W by a Spearman of "
            f"{over_seeds(plain).said}, mean over heads: {more.said} more than with ρ(t) of the other heads "
            "of its layer."
        )
        details = (
            f"In models trained with LocAteR it is {narrow.said} more. The true softmax in place of the "
            f"piecewise-linear one changes the agreement by {paired(by_seed(plain), by_seed(true)).said}."
        )
    return with_public(rows, found, said, details, _public)


def _public(rows: pd.DataFrame, name: str) -> Verdict:
    """By the mean of each layer; layers are not independent, and the interval is nominal."""
    found = over(excess(rows).groupby("layer")["value"].mean().tolist())
    what = f"In {name}, over its layers (nominal), a head’s own W tells more by an amount that"
    return is_above(found, 0, what)


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Own against others’, piecewise linear against softmax, and what was measured of two heads."""
    models = [name for name in (DEEP, DEEP_LOCATER, *PUBLIC) if name in set(rows["model"])]
    own, true = ([_dots(rows, name, what) for name in models] for what in ("null", "softmax"))
    charts = [
        Chart("Agreement of measured attention with ρ(t), every head",
              "with the predictions of the other heads", "with its own", own,
              remark="above the diagonal where its own W tells more"),
        Chart("Piecewise-linear against true softmax, every head", "agreement with ρ(t)",
              "with a walk’s attention", true),
    ]  # fmt: skip
    heads = excess(rows[(rows["model"] == DEEP) & (rows["revision"] == "seed 0")])
    order = heads.sort_values("value")
    for which, one in (("best", order.tail(1)), ("worst", order.head(1))):
        for layer, head in zip(one["layer"], one["head"], strict=True):
            charts += _curves(points, which, int(layer), int(head))
    return charts


def _dots(rows: pd.DataFrame, name: str, against: str) -> Series:
    """Agreement of the heads of a model with what its own W predicts, against others’ or by the softmax."""
    own = rows[(rows["model"] == name) & rows["head"].notna()]
    both, x, y = own[own["measure"] == "propagation_agreement"], "null", "value"
    if against == "softmax":
        both, x, y = beside(own, *AGREEMENTS, ["revision", "layer", "head"]), "value", "value_other"
    return dots(name, both.dropna(subset=[x, y]), x, y, "{revision}, layer {layer}, head {head}")


def _curves(points: pd.DataFrame, which: str, layer: int, head: int) -> list[Chart]:
    own = points[(points["layer"] == layer) & (points["head"] == head)]
    parts = {name: own[own["series"] == key] for key, name in CURVES.items()}
    lines = [Series(name, [*part["x"]], [*part["y"]]) for name, part in parts.items() if len(part)]
    title, levels = f"The {which} head: layer {layer}, head {head}", ((1.0, "even"),)
    return [Chart(title, "t/T", "ρ, or density of attention", lines, levels=levels)] if lines else []


def judge_walk(rows: pd.DataFrame) -> Verdict:
    """The slope must be nearer to 1 than to 0, over seeds; in public models over layers."""
    found = over_seeds(_slopes(rows[rows["model"] == DEEP]))
    own = is_above(found, WALKS, "The slope of log E‖x_{t+s} − x_t‖² on log s, mean over layers,")
    return with_public(rows, [own], own.said, "", _public_walk)


def _public_walk(rows: pd.DataFrame, name: str) -> Verdict:
    slopes = over(_slopes(rows)["value"].tolist())
    return is_above(slopes, WALKS, f"That of {name}, over its layers (nominal),")


def _slopes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["measure"] == "walk_slope") & rows["value"].notna()]


def draw_walk(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The slope of every layer."""
    lines = curves(_slopes(rows), "layer")
    levels = ((1.0, "a walk at random"), (0.0, "no walk"))
    return [Chart("How walk-like what enters attention is", "layer", "walk slope", lines, levels=levels)]


_METHOD = (
    "Causal language models by character, with pre-norms; Σ is the covariance of the increments of what "
    "enters attention on held-out text. "
)
CLAIM = Claim(
    "prediction-and-attention", "Attention falls where W says that signal passes", judge=judge, draw=draw,
    experiment=partial(experiment, measures=(*AGREEMENTS, "regime_density")),
    expected="The attention of the last query falls on the positions from which, by ρ(t) of the head’s own "
    "W, signal passes.",
    method=_METHOD + "ρ(t) of Σ^½WΣ^½ (simulated where its effective rank is low) is held against the mean "
    "attention of last queries, over 32 stretches of t/T, by Spearman’s correlation. Chance is not 0, and a "
    "random W has a flat ρ that any slope beats: the null is the mean over the predictions of the other "
    "heads of the layer and their mirror images. The same with the true softmax over walks. Models trained "
    "with LocAteR stand beside; at the scale full also public models.",
    reconstructed="The paper tells theory and language modelling apart and holds no head against its own "
    "prediction; the test and its null are ours.",
    measures=(*AGREEMENTS, "regime_density"),
)  # fmt: skip
WALK_CLAIM = Claim(
    "inputs-walk", "What enters attention walks at random (the premise)", judge=judge_walk, draw=draw_walk,
    experiment=partial(experiment, measures=("walk_slope",)),
    expected="The theory takes inputs for a random walk: the mean squared distance of two of them grows in "
    "proportion to how far apart they are, a slope of 1 on log scales. Inputs that do not depend on each "
    "other have a slope of 0.",
    method=_METHOD + "The slope is over distances s = 1, 2, 4 … to the length of the sequence.",
    reconstructed="The level of .5, half-way, is ours; the paper calls its data model a simplification.",
    measures=("walk_slope",),
)  # fmt: skip
