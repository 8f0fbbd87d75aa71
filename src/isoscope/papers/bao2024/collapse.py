"""Claim: a narrow spectrum keeps attention from both collapses, of entropy and of rank."""

from __future__ import annotations

import pandas as pd

from isoscope.papers.bao2024.heads import along_steps
from isoscope.papers.bao2024.models import SHALLOW, STRENGTH, TARGET
from isoscope.papers.bao2024.penalty import asked_of, of_arm
from isoscope.papers.bao2024.reading import at_end, beside, looked
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, lacking
from isoscope.papers.intervals import by_seed, correlation, over, over_seeds, paired
from isoscope.papers.lines import curves, dots, series
from isoscope.papers.workshop import Workshop
from isoscope.results.reading import Reading
from isoscope.show.charts import Chart

ALONG = "along training"
TITLES = {"normalised_entropy": "Normalised entropy", "rank_residual": "Rank residual"}
OF_TRAINING = tuple(TITLES)
_PLACE = ["revision", "step", "layer"]
_VALUES = [*_PLACE, "value", "value_other"]
OF_WEIGHTS = ("spectral_norm", "spectrum_variance")

MARGIN = 0.02  # how much lower the rank residual may be with LocAteR before it counts as lower


def experiment(workshop: Workshop) -> Found:
    """Entropy, rank residual and spectral norm, by layer: along training, and at its end with LocAteR."""
    asked = [*workshop.along_training(ALONG), *asked_of(workshop, [(STRENGTH, TARGET)])]
    ended, lost = workshop.train(asked)
    parts = [each.read(OF_TRAINING, steps="all" if each.name == ALONG else "last") for each in ended]
    looks = [(along_steps if each.name == ALONG else at_end)(each, workshop.device) for each in ended]
    for rows, _ in looked(workshop, looks):
        parts.append(rows[rows["measure"].isin(OF_WEIGHTS) & rows["head"].isna()])
    return Found(pd.concat([*parts, lost], ignore_index=True))


def correlated(rows: pd.DataFrame, measure: str) -> Reading:
    """Spearman's correlation with the spectral norm over layers and steps; interval over seeds."""
    both = beside(rows[rows["model"] == ALONG], measure, "spectral_norm", _PLACE).dropna(subset=_VALUES)
    pairs = [(part["value"].tolist(), part["value_other"].tolist()) for _, part in both.groupby("revision")]
    return over([correlation(*pair).value for pair in pairs])


def changed(rows: pd.DataFrame, shape: str, measure: str) -> Reading:
    """With LocAteR less without, at the end: mean over layers, paired by seed."""
    own = rows[(rows["measure"] == measure) & (rows["layer"].fillna(0) > 0)]
    return paired(*map(by_seed, _without_and_with(own, shape)))


def _without_and_with(rows: pd.DataFrame, shape: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of a shape without LocAteR, and those with it at the setting that decides."""
    return of_arm(rows, shape), of_arm(rows, shape, f"λ {STRENGTH:g}", TARGET)


def judge(rows: pd.DataFrame) -> Verdict:
    """Entropy falls as the spectral norm grows; with LocAteR entropy is higher and rank no lower."""
    norm, rank = (correlated(rows, measure) for measure in OF_TRAINING)
    own = rows[(rows["model"] == ALONG) & (rows["measure"] == "rank_residual") & (rows["layer"] > 0)]
    least = over_seeds(own[own["step"] == own["step"].max()], "min")
    said = (
        f"Along training the spectral norm of W correlates with normalised entropy by {norm.said} and with "
        f"the rank residual by {rank.said}."
    )
    told = f"The lowest rank residual of a layer is {over_seeds(own, 'min').said} along training and "
    told += f"{least.said} at its end."
    for shape in _shapes(rows)[1:]:
        entropy, residual = (changed(rows, shape, name) for name in OF_TRAINING)
        told += f" In {shape} LocAteR changes normalised entropy by {entropy.said} and the rank residual by "
        told += f"{residual.said}."
    entropy, residual = (changed(rows, SHALLOW, name) for name in OF_TRAINING)
    said += f" In {SHALLOW} LocAteR changes the one by {entropy.said} and the other by {residual.said}."
    parts = [is_below(norm, 0), is_above(entropy, 0), is_above(residual, -MARGIN)]
    return all_of(parts, said + lacking(rows), told)


def _shapes(rows: pd.DataFrame) -> list[str]:
    """The shapes that were trained with LocAteR and without, the one that decides first."""
    return [shape for shape in rows["arm"].unique() if shape != ALONG]


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """The three along training by layer, the plane of two of them, and the ends with LocAteR."""
    whole = rows[(rows["model"] == ALONG) & (rows["step"].fillna(0) > 0) & (rows["layer"].fillna(0) > 0)]
    charts = []
    for measure, title in {**TITLES, "spectral_norm": "Spectral norm of W, mean over heads"}.items():
        lines = curves(whole[whole["measure"] == measure], "step", "layer")
        charts.append(Chart(title, "step", "", lines, log_x=True, log_y=measure not in TITLES, ordered=True))
    both = beside(whole, "normalised_entropy", "spectral_norm", _PLACE).dropna(subset=_VALUES)
    clouds = [
        dots(f"layer {layer}", part, "value_other", "value", "{revision}, step {step}")
        for layer, part in both.groupby("layer")
    ]
    title = "Entropy against the spectral norm, all steps"
    charts.append(Chart(title, "‖W‖₂", "", clouds, log_x=True, ordered=True))
    for measure, title in TITLES.items():
        own = rows[(rows["measure"] == measure) & (rows["layer"].fillna(0) > 0)]
        ends = {shape: map(over_seeds, _without_and_with(own, shape)) for shape in _shapes(rows)}
        places = ["without LocAteR", "with"]
        lines = [series(shape, places, list(found), style="dots") for shape, found in ends.items()]
        charts.append(Chart(f"{title} at the end", "", "", lines))
    return charts


CLAIM = Claim(
    "collapse", "A narrow spectrum prevents both collapses", experiment=experiment, judge=judge, draw=draw,
    expected="Entropy collapses as the spectral norm of W grows; even attention lets all vectors of a "
    "sequence become one (rank collapse). A narrow spectrum about a mean prevents both: with LocAteR entropy "
    "is higher, and the rank residual no lower.",
    method="Causal language models by character with pre-norms: normalised entropy, the rank residual "
    "‖X_s − 1x̄_sᵀ‖/‖X_s‖ of each sequence, averaged, and the spectral norm of W, layer by layer at every "
    "step that is kept; Spearman’s correlations over layers and steps, one a seed. Then models with "
    "and without LocAteR at the end of training, means over layers, paired by seed; what decides is one "
    "layer and one head, where LocAteR does narrow the spectrum.",
    reconstructed=f"The margin of {MARGIN:g} for the rank residual is ours, and so is LocAteR’s loss. The "
    "spectral norm is the read-out of Zhai et al. 2023.",
    measures=("normalised_entropy", "rank_residual", "spectral_norm"),
)  # fmt: skip
