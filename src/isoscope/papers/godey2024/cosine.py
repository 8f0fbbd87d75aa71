"""Claim: nearly every model is anisotropic in some layer, whatever its modality and tokens."""

from __future__ import annotations

import pandas as pd

from isoscope.formatting import listed
from isoscope.papers.claims import WORDS, Claim, Found, Verdict, lacking, measured
from isoscope.papers.godey2024.arms import states
from isoscope.papers.intervals import of_row, over_seeds, within
from isoscope.papers.lines import curves
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.show.charts import Chart

LEVEL = 0.1  # a mean cosine above it is called anisotropic here
NEARLY = 0.8  # of the models are nearly all


def experiment(workshop: Workshop) -> Found:
    """Every layer of every model."""
    return Found(states(workshop))


def most(rows: pd.DataFrame) -> Reading:
    """The mean cosine in the most anisotropic layer of a model: over seeds, or that row's own interval."""
    if rows["revision"].nunique() == 1:
        return of_row(rows.sort_values("value").iloc[-1])
    return within(over_seeds(rows, "max"), -1, 1)


def at_the_end(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of layers, and of what leaves the final norm as one layer more: the last that a model shows."""
    own = rows[rows["kind"].isin(("layer", "output"))]
    deepest = own.groupby("model")["layer"].transform("max")
    return own.assign(layer=own["layer"].fillna(deepest + 1))


def judge(rows: pd.DataFrame) -> Verdict:
    """Held where the share of models above the level is surely large enough, not where it surely is not."""
    found = most_of_models(at_the_end(measured(rows)))
    held, above, below = _share(found)
    alone = _share(blocks := most_of_models(measured(rows)))
    told = "; ".join(f"{name} {each.said}" for name, each in found.items())
    tail = f"; surely below it: {listed(below)}" if below else ""
    least = min(found.items(), key=lambda item: item[1].value)
    said = (
        f"In its most anisotropic layer the mean cosine between sequences is surely above {LEVEL:g} in "
        f"{len(above)} of {len(found)} models{tail}; the least is {least[1].said} ({least[0]})."
    )
    details = (
        f"By model: {told}. Of the blocks alone, without what leaves the final norm, {len(alone[1])} of "
        f"{len(blocks)} are surely above: {WORDS[alone[0]]}."
    )
    return Verdict(held, said + lacking(rows), details)


def most_of_models(rows: pd.DataFrame) -> dict[str, Reading]:
    """The most anisotropic layer of every model, of those that have a number; what enters does not count."""
    own = rows[(rows["measure"] == "mean_cosine_between") & (rows["layer"] > 0) & rows["value"].notna()]
    return {str(model): most(part) for model, part in own.groupby("model", sort=False)}


def _share(found: dict[str, Reading]) -> tuple[bool | None, list[str], list[str]]:
    """Whether nearly all are above the level; which surely are, and which surely are not."""
    above = [name for name, each in found.items() if each.above(LEVEL)]
    below = [name for name, each in found.items() if each.below(LEVEL)]
    if len(above) >= NEARLY * len(found):
        return True, above, below
    return (False if len(found) - len(below) < NEARLY * len(found) else None), above, below


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The mean cosine and the relative drift along layers, a curve a model."""
    there = at_the_end(measured(rows))
    cosine, drift = (there[there["measure"] == name] for name in ("mean_cosine_between", "relative_drift"))
    level = ((LEVEL, "anisotropic"),)
    lines = curves(cosine, "layer", bounds=(-1, 1))
    return [
        Chart("Mean cosine between sequences", "layer", "", lines, levels=level),
        Chart("Relative drift", "layer", "", curves(drift, "layer", bounds=(0, 1))),
    ]


CLAIM = Claim(
    "cosine-by-layer", "Cosine by layer, across modalities and tokens", experiment=experiment, judge=judge,
    draw=draw,
    expected="Nearly all models are anisotropic in some layer: text by character or sub-word, causal "
    "or masked, images and speech alike.",
    method="Models of the same block are trained on each kind of data (two CNNs beside them), or public "
    "models are read at the scale full. Every layer's mean cosine is exact, over pairs of vectors of "
    "different sequences; layer 0 is what enters the first block and does not count, the last is what leaves "
    "the final norm, where there is one. Intervals are over seeds, of public models over sequences.",
    reconstructed=f"The paper gives no threshold: a layer is called anisotropic above {LEVEL:g}, and nearly "
    f"all are {NEARLY:.0%} of the models. That what leaves the final norm counts as a layer is our choice "
    "too; the verdict without it is told beside.",
    measures=("mean_cosine_between", "relative_drift"),
)  # fmt: skip
