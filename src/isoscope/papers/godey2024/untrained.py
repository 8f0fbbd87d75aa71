"""Claims: a bias common to all inputs sharpens an untrained post-norm block; under a pre-norm it reverses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pandas as pd

from isoscope.lab.block.block import Setting, Unit, read_unit, units
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below
from isoscope.papers.intervals import by_seed, over, paired
from isoscope.papers.lines import series
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.results.row import frame
from isoscope.show.charts import Chart

BIASES = (0.0, 20.0, 50.0, 100.0, 200.0)
_SHOWN = {
    "mean_cosine": ("layer", "Mean cosine of what leaves"),
    "score_std": ("attention", "Std of the scores within rows"),
    "normalised_entropy": ("attention", "Normalised entropy"),
    "largest_weight": ("attention", "Largest weight of a row"),
    "smallest_weight": ("attention", "Smallest weight of a row"),
    "drift_share": ("attention", "Drift share"),
}


_PRE = ("normalised_entropy", "score_std")


def experiment(workshop: Workshop, norm: str) -> Found:
    """Every bias and seed; sites only, heads are alike in a block that was never trained."""
    asked = units([norm], BIASES, workshop.seeds)
    parts = workshop.side_by_side(partial(read, workshop.scale.block), asked)
    return Found(pd.concat(parts, ignore_index=True))


def read(setting: Setting, unit: Unit) -> pd.DataFrame:
    """The rows of one unit."""
    rows, _, _ = read_unit(setting, unit)
    return frame(row for row in rows if row.head is None)


def change(rows: pd.DataFrame, norm: str, measure: str) -> tuple[Reading, float, float]:
    """What the largest bias changes against none, paired by seed; and both biases."""
    found = _at(rows, norm, measure)
    least, most = found["bias"].min(), found["bias"].max()
    ends = (by_seed(found[found["bias"] == end]) for end in (least, most))
    return paired(*ends), float(least), float(most)


def judge(rows: pd.DataFrame) -> Verdict:
    """Under post-norm: cosine of what leaves, spread of scores and largest weight up, entropy down."""
    measures = ("mean_cosine", "score_std", "normalised_entropy", "largest_weight")
    found, (none, *_), (most, *_) = zip(*(change(rows, "post", name) for name in measures), strict=True)
    cosine, score, entropy, weight = found
    where = f"from a bias of norm {none:g} to {most:g} the mean cosine of what leaves changes by"
    parts = [is_above(cosine, 0), is_above(score, 0), is_below(entropy, 0), is_above(weight, 0)]
    said = (
        f"Under post-norm, {where} {cosine.said}, the std of the scores within rows by {score.said}, "
        f"normalised entropy by {entropy.said} and the largest weight of a row by {weight.said}."
    )
    return all_of(parts, said)


def judge_pre(rows: pd.DataFrame) -> Verdict:
    """Under pre-norm the entropy must rise with the bias."""
    entropy, none, most = change(rows, "pre", "normalised_entropy")
    what = f"Under pre-norm, the change of normalised entropy from a bias of norm {none:g} to {most:g}"
    return is_above(entropy, 0.0, what)


def draw(rows: pd.DataFrame, points: pd.DataFrame, norm: str, measures: Iterable[str]) -> list[Chart]:
    """Each quantity along the bias."""
    charts = []
    for measure in measures:
        own, title = _at(rows, norm, measure), _SHOWN[measure][1]
        biases = sorted(own["bias"].unique())
        found = [over(own[own["bias"] == bias]["value"].tolist()) for bias in biases]
        line, log_y = series(f"{norm}-norm", biases, found), measure == "smallest_weight"
        charts.append(Chart(title, "norm of the bias", "", [line], log_y=log_y))
    return charts


def _at(rows: pd.DataFrame, norm: str, measure: str) -> pd.DataFrame:
    """What leaves the block, or its attention: both are at layer 1."""
    mine = (rows["kind"] == _SHOWN[measure][0]) & (rows["measure"] == measure) & (rows["layer"] == 1)
    return rows[mine & (rows["arm"] == norm)].rename(columns={"arm": "norm", "setting": "bias"})


_METHOD = (
    "A block initialised as BERT's, N(0, 0.02²), norms 1 and 0, 768 wide with 12 heads, is given sequences "
    "drawn evenly from its table, each vector layer-normalised, with one bias N·g/‖g‖ added to all. The "
    "change from N = 0 to the largest N is paired by seed. At the scale laptop 8 sequences of 128, else 16 "
    "of 512; `isoscope block` has more of it."
)
CLAIM = Claim(
    "untrained-block", "A common bias sharpens an untrained block", judge=judge,
    experiment=partial(experiment, norm="post"), draw=partial(draw, norm="post", measures=_SHOWN),
    expected="In a fresh Transformer block, inputs that share a bias leave more alike, and with the norm of "
    "the bias the scores spread and attention becomes sharp.",
    method=_METHOD,
    measures=("mean_cosine", "score_std", "normalised_entropy", "largest_weight", "drift_share"),
)  # fmt: skip
PRE_CLAIM = Claim(
    "pre-norm-reversal", "Under pre-norm the effect reverses", judge=judge_pre,
    experiment=partial(experiment, norm="pre"), draw=partial(draw, norm="pre", measures=_PRE),
    expected="Drift must enter after the normalisation: where inputs are normalised before attention, a "
    "large bias makes them alike and attention even.",
    method=_METHOD,
    reconstructed="The paper does not make this claim; it follows from LN(x + b) → LN(b).",
    measures=_PRE,
)  # fmt: skip
