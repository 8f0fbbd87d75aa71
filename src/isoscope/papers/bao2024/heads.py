"""Claim: heads of trained models lie where attention localises, in the plane of tr W and ‖W‖_F."""

from __future__ import annotations

import math

import pandas as pd

from isoscope.formatting import short
from isoscope.lab.train.checkpoints import due
from isoscope.papers.bao2024.reading import SHARES, Look, beside, is_localised, looked, public, with_public
from isoscope.papers.claims import Claim, Found, Verdict, is_above, kept
from isoscope.papers.intervals import by_seed, over, over_seeds, paired
from isoscope.papers.lines import along, dots
from isoscope.papers.workshop import Trained, Workshop
from isoscope.results.trajectory import thinned
from isoscope.show.charts import Chart, Series
from isoscope.show.regimes import REGIMES

MODEL = "characters, causal"
MOST = 0.5  # the share of heads from which on most are localised
ON_DATA = 3  # steps of a training that are read on data
PLANES = {"trace": "frobenius", "trace_on_data": "frobenius_on_data"}
KEPT = (*PLANES, *PLANES.values(), *SHARES.values(), "trace_square", "lean", "query_key_rank")


def experiment(workshop: Workshop) -> Found:
    """The heads of language models by character, along training, and of public models where they are read."""
    ended, lost = workshop.train(workshop.along_training(MODEL))
    parts = [rows for rows, _ in looked(workshop, [along_steps(each, workshop.device) for each in ended])]
    every = pd.concat([*parts, lost, public(workshop)], ignore_index=True)
    rows = kept(every, every["measure"].isin(KEPT))
    return Found(rows, notes=_notes(rows))


def along_steps(training: Trained, device: str) -> Look:
    """A training that is read at every step that was kept, and at some of them with its data."""
    steps = due(training.experiment.checkpoints, training.experiment.recipe.steps)
    return Look(training, steps, tuple(thinned(steps, ON_DATA)), device)


def _notes(rows: pd.DataFrame) -> tuple[str, ...]:
    ranks = rows[(rows["measure"] == "query_key_rank") & rows["head"].notna()]
    last = ranks[ranks["step"] == ranks["step"].max()]["value"]
    if not len(last):
        return ()
    return (
        f"The effective rank of W is {short(float(last.min()))} to {short(float(last.max()))} at the end of "
        f"training, median {short(float(last.median()))}. Under 32 the Gaussian form of ρ(t) does not hold, "
        "and the inequalities of the regimes, which rest on its moments, are a guide and no more.",
    )


def judge(rows: pd.DataFrame) -> Verdict:
    """Most heads must be localised at the end of training, and most of each public model that was read."""
    own = rows[rows["model"] == MODEL]
    found: list[Verdict] = []
    said = details = ""
    if len(own):
        alone, on_data = (over_seeds(_last(own, name)) for name in SHARES.values())
        leans, lean = own[own["measure"] == "lean"], _last(own, "lean")
        change = paired(by_seed(leans[leans["step"] == leans["step"].min()]), by_seed(lean))
        found.append(is_above(on_data, MOST))
        said = (
            f"At the end of training a share of {on_data.said} of the heads is localised with the inputs’ "
            "increments in W."
        )
        details = (
            f"By the weights alone it is {alone.said}; |tr W|/2σ, which must exceed 1, is "
            f"{over_seeds(lean).said} and changed by {change.said} in training."
        )
    return with_public(rows, found, said, details, _public)


def _last(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    own = rows[rows["measure"] == measure]
    return own[own["step"] == own["step"].max()]


def _public(rows: pd.DataFrame, name: str) -> Verdict:
    """By the share of each layer; layers are not independent, and the interval is nominal."""
    heads = rows[(rows["measure"] == "trace_on_data") & rows["head"].notna() & rows["value"].notna()]
    shares = heads.assign(value=is_localised(heads).astype(float)).groupby("layer")["value"].mean()
    what = f"The share of localised heads of {name}, over its layers (nominal),"
    return is_above(over(shares.tolist()), MOST, what)


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The plane by weights alone and with data, then shares and lean along training."""
    after = rows[(rows["model"] == MODEL) & (rows["step"].fillna(0) > 0)]
    names = zip(SHARES.values(), ("by the weights alone", "increments in"), strict=True)
    shares = [along(after[after["measure"] == name], "step", called) for name, called in names]
    level = ((1.0, "localised above"),)
    lean = along(after[after["measure"] == "lean"], "step", "all heads")
    return [
        *(_plane(rows, across, up) for across, up in PLANES.items()),
        Chart("Share of localised heads", "step", "", shares, log_x=True, levels=((MOST, "most"),)),
        Chart("|tr W|/2σ, mean over heads", "step", "", [lean], log_x=True, log_y=True, levels=level),
    ]


def _plane(rows: pd.DataFrame, across: str, up: str) -> Chart:
    """Heads at the last step as dots by their regime, and between which lines tr W² decides."""
    heads = rows[rows["head"].notna() & rows["measure"].isin([across, up])]
    ends = heads.groupby("model")["step"].transform("max")
    last = heads[heads["step"].isna() | (heads["step"] == ends)]
    both = beside(last, across, up, ["model", "revision", "layer", "head"])
    both = both[both["value"].notna() & (both["value_other"] > 0)]
    both = both.assign(regime=both["tag"].where(both["tag"] != "", "undecided"))
    told = "{model} {revision}, layer {layer}, head {head}"
    named = (
        dots(REGIMES[name].label, both[both["regime"] == name], "value", "value_other", told)
        for name in REGIMES
    )
    lines = [one for one in named if len(one.x)]
    far = float(both["value"].abs().max()) if len(both) else 1.0
    low = float(both["value_other"].min()) if len(both) else 0.1
    for name, slope in (("sure below", math.sqrt(3 / 7)), ("never above", math.sqrt(3))):
        first = min(far, low / slope)
        right = [first + (far - first) * step / 24 for step in range(25)]
        y = [slope * one for one in right]
        lines += [Series(f"localised: {name}", [s * x for x in right], y, style="thin") for s in (-1, 1)]
    what = "by the weights alone" if across == "trace" else "the inputs’ increments in W"
    return Chart(f"Every head at the end, {what}", "tr W", "‖W‖_F", lines, log_y=True)


CLAIM = Claim(
    "trained-heads", "Trained heads lie where attention localises", experiment=experiment, judge=judge,
    draw=draw,
    expected="If localisation is what attention is trained for, heads leave their random start for the part "
    "of the plane of tr W and ‖W‖_F where a narrow spectrum has a mean that is not zero: |tr W|/2 above the "
    "deviation σ of the scores.",
    method="W of every head of causal language models by character, γ of the norm in front folded in, at "
    "every step that is kept; and Σ^½WΣ^½ at three of them, Σ the covariance of the increments of what "
    "enters attention on held-out text. A head’s regime is told by the inequalities, with “undecided”. At "
    "the scale full also the heads of public models on text.",
    reconstructed="That most heads, more than half, must be localised is ours: the paper’s own plots of "
    "trained heads are not available here. Position is learnt and enters the inputs, not W.",
    measures=("trace", "frobenius", "trace_on_data", "frobenius_on_data"),
)  # fmt: skip
