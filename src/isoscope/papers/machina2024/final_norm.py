"""Claim: the final norm is learnt so that its β takes away the drift of the hidden states."""

from __future__ import annotations

import pandas as pd

from isoscope.papers.claims import Claim, Found, Verdict, is_above, is_below, kept
from isoscope.papers.machina2024.along import EARLIER, along_training
from isoscope.papers.machina2024.drawing import drawn, over_steps, side_by_side
from isoscope.papers.machina2024.judging import brief, changes, concluded, levels, pick
from isoscope.papers.machina2024.weighing import I_OWN
from isoscope.papers.workshop import Workshop
from isoscope.run.weigh.norm_stages import BEFORE, OUTPUT, SCALED, STANDARDISED, WITHOUT_BIAS, WITHOUT_WEIGHT
from isoscope.show.charts import Chart
from isoscope.sites import parts

COSINE = "mean_cosine_between"
STAGES = {BEFORE: "before", STANDARDISED: "standardised", SCALED: "×γ", OUTPUT: "×γ+β"}
EDITS = {OUTPUT: "as it is", WITHOUT_BIAS: "β := 0", WITHOUT_WEIGHT: "γ := 1"}
EDITS[f"norm_{EARLIER}"] = "γ, β from halfway"


def experiment(workshop: Workshop) -> Found:
    """The stages of the final norm of every model along training, and its edits."""
    rows, _ = along_training(workshop)
    return Found(kept(rows, rows["kind"].map(lambda kind: parts(kind)[0] == "norm").astype(bool)))


def judge(rows: pd.DataFrame) -> Verdict:
    """β must point against the drift that γ leaves, and the mean cosine must fall by it."""
    cancels = levels(pick(rows, "norm", "bias_cancels"))
    removed = levels(pick(rows, "norm", "drift_removed_by_bias"))
    change = changes(pick(rows, SCALED, COSINE), pick(rows, OUTPUT, COSINE))
    said = (
        f"At the last checkpoint the cosine of β with the drift's opposite is {brief(cancels)}; β removes a "
        f"share of {brief(removed)} of the drift, and changes the mean cosine between sequences by "
        f"{brief(change)}."
    )
    parts = [is_above(each, 0) for each in cancels.values()]
    parts += [is_below(each, 0) for group, each in change.items() if group in cancels]
    more = {"Cosine": cancels, "Share": removed, "Change of the mean cosine": change}
    return concluded(parts, said, rows, more)


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """Does β cancel the drift, along training; then the stages and the edits at the end."""
    charts = [
        over_steps(rows, "norm", "bias_cancels", "Does β cancel the drift: cos(β, −E[γ⊙x̂])"),
        over_steps(rows, "norm", "drift_removed_by_bias", "Share of the drift that β removes"),
    ]
    for measure, title in (
        (COSINE, "Mean cosine by stage"), ("relative_drift", "Relative drift by stage"),
        ("isoscore", "IsoScore by stage"), (I_OWN, "I of the hidden states by stage"),
    ):  # fmt: skip
        places = {name: pick(rows, kind, measure) for kind, name in STAGES.items()}
        charts.append(side_by_side(title, places))
    edits = {name: pick(rows, kind, COSINE) for kind, name in EDITS.items()}
    return drawn(*charts, side_by_side("Mean cosine after edits", edits))


CLAIM = Claim(
    "final-norm", "The final norm is learnt for isotropy", experiment=experiment, judge=judge, draw=draw,
    expected="Isotropic models use their final LayerNorm to become so: its β points against the drift of "
    "what it is added to, and takes anisotropy away.",
    method="What enters the final norm is folded, on held-out text, at each of its stages: before, "
    "standardised, times γ, plus β; and with β := 0, γ := 1, and γ and β of the checkpoint halfway through "
    "training. Mean cosine, drift, IsoScore and I of each; intervals are over seeds, of public models over "
    "models.",
    reconstructed="All of it: the paper tells what it found in the final norm of large Pythia models, not "
    "how that was measured. IsoScore does not see β, which moves the mean only.",
    measures=("bias_cancels", "drift_removed_by_bias", COSINE, "relative_drift", "isoscore", I_OWN),
)  # fmt: skip
