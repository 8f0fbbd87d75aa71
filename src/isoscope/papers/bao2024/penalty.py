"""Claim: LocAteR narrows the spectrum of W, and with it entropy rises and perplexity falls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from isoscope.formatting import short
from isoscope.lab.train.experiment import Experiment
from isoscope.papers.bao2024.models import SHALLOW, STRENGTH, TARGET, deep, locater, settings, shallow
from isoscope.papers.bao2024.reading import at_end, looked
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, lacking
from isoscope.papers.intervals import by_seed, over_seeds, paired
from isoscope.papers.lines import series
from isoscope.papers.workshop import Trained, Workshop
from isoscope.results.reading import Reading
from isoscope.show.charts import Chart, Series

VARIANCE = "spectrum_variance"
OF_TRAINING = ("normalised_entropy", "rank_residual")
OF_WEIGHTS = (VARIANCE, "spectrum_mean", "trace", "frobenius", "spectral_norm")
OF_DATA = ("propagation_mean", "propagation_range")
JUDGED = {
    "perplexity": "Perplexity: change", "normalised_entropy": "Normalised entropy: change",
    VARIANCE: "Variance of the eigenvalues: ratio",
}  # fmt: skip
MAIN = f"λ {STRENGTH:g}, τ {TARGET:g}"
LEFT = 0.35  # where models without LocAteR, which have no τ, are drawn on its axis


def asked_of(workshop: Workshop, tried: Sequence[tuple[float, float]]) -> list[Trained]:
    """Every training, without LocAteR and with each of these settings."""
    found, many = [], deeper(workshop)
    for seed in range(workshop.seeds):
        found.append(_training(workshop, SHALLOW, shallow(workshop, seed, "")))
        for each in tried:
            found.append(_training(workshop, SHALLOW, shallow(workshop, seed, locater(*each)), *each))
        found.append(_training(workshop, many, deep(workshop, seed, narrow=False)))
        found.append(_training(workshop, many, deep(workshop, seed, narrow=True), STRENGTH, TARGET))
    return found


def _training(
    workshop: Workshop, shape: str, experiment: Experiment, strength: float = 0, target: float = math.nan
) -> Trained:
    """A training whose rows have the shape as their arm, LocAteR's strength as `about`, and τ as setting."""
    if not strength:
        return workshop.training(f"{shape}: none", experiment, arm=shape)
    name = f"{shape}: λ {strength:g}, τ {target:g}"
    return workshop.training(name, experiment, arm=shape, about=f"λ {strength:g}", setting=target)


def of_arm(rows: pd.DataFrame, shape: str, strength: str = "", target: float = math.nan) -> pd.DataFrame:
    """The rows of one shape: without LocAteR, or with it at this strength ("λ 0.1") and this target."""
    there = rows["setting"].isna() if math.isnan(target) else rows["setting"] == target
    return rows[(rows["arm"] == shape) & (rows["about"] == strength) & there]


def deeper(workshop: Workshop) -> str:
    """What the deeper shape is called."""
    size = workshop.scale.arm
    return f"{size.layers} layers, {size.heads} heads"


def experiment(workshop: Workshop) -> Found:
    """Loss, entropy, spectra and ρ(t) of every arm and seed at the end of training."""
    ended, lost = workshop.train(asked_of(workshop, settings(workshop)))
    parts: list[pd.DataFrame] = []
    for each in ended:
        rows = each.read(("loss", *OF_TRAINING))
        loss = rows["measure"] == "loss"
        perplexity = rows[loss].assign(measure="perplexity", value=np.exp(rows.loc[loss, "value"]))
        parts += [rows[~loss], perplexity]
    for rows, _ in looked(workshop, [at_end(each, workshop.device) for each in ended]):
        parts.append(rows[rows["measure"].isin([*OF_WEIGHTS, *OF_DATA]) & rows["head"].isna()])
    return Found(pd.concat([*parts, lost], ignore_index=True), notes=(_least(workshop),))


def _least(workshop: Workshop) -> str:
    """What keeping a mean costs in variance where a head has fewer dimensions than the model."""
    size = workshop.scale.arm
    inner = size.width // size.heads
    least = TARGET**2 * (1 / (inner * size.width) - 1 / size.width**2)
    return (
        "W of a head has at most e eigenvalues of d that are not zero. To hold tr W = τ with them, the "
        f"variance over all d must be at least τ²(1/(e·d) − 1/d²): 0 with one head, {short(least)} for "
        f"τ = {TARGET:g} in {deeper(workshop)} of width {size.width}. There LocAteR can raise the variance."
    )


def changes(
    rows: pd.DataFrame, shape: str, strength: str = f"λ {STRENGTH:g}", target: float = TARGET
) -> dict[str, Reading]:
    """What LocAteR changes, paired by seed: differences of means over layers; of a variance the ratio."""
    found = {}
    for name in JUDGED:
        own = rows[rows["measure"] == name]
        own = own.assign(value=np.log(own["value"])) if name == VARIANCE else own
        found[name] = paired(by_seed(of_arm(own, shape)), by_seed(of_arm(own, shape, strength, target)))
    log = found[VARIANCE]
    value, low, high = (math.exp(end) for end in (log.value, log.low, log.high))
    return {**found, VARIANCE: Reading(value, log.n, low=low, high=high)}


def judge(rows: pd.DataFrame) -> Verdict:
    """At the setting that was chosen beforehand, in one layer: variance down, entropy up, perplexity down."""
    found = changes(rows, SHALLOW)
    tried = [one for one in penalised(rows) if one[0] == SHALLOW]
    each = [changes(rows, *one) for one in tried]
    said = (
        f"In {SHALLOW}, {MAIN} multiplies the variance of the eigenvalues by {found[VARIANCE].said}, "
        f"changes normalised entropy by {found['normalised_entropy'].said} and perplexity by "
        f"{found['perplexity'].said}."
    )
    details = (
        f"Of {len(tried)} settings {sum(one[VARIANCE].below(1) for one in each)} lower the variance, "
        f"{sum(one['normalised_entropy'].above(0) for one in each)} raise the entropy, "
        f"{sum(one['perplexity'].below(0) for one in each)} lower perplexity and "
        f"{sum(one['perplexity'].above(0) for one in each)} raise it, by their intervals."
    )
    for shape in (each for each in rows["arm"].unique() if each != SHALLOW):
        own = changes(rows, shape)
        details += (
            f" In {shape} {MAIN} multiplies the variance by {own[VARIANCE].said} and changes the others by "
            f"{own['normalised_entropy'].said} and {own['perplexity'].said}."
        )
    entropy, perplexity = is_above(found["normalised_entropy"], 0), is_below(found["perplexity"], 0)
    parts = [is_below(found[VARIANCE], 1), entropy, perplexity]
    return all_of(parts, said + lacking(rows), details)


def penalised(rows: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Shape, strength and target of every arm with LocAteR, in their order."""
    arms = rows.loc[rows["setting"].notna(), ["arm", "about", "setting"]].drop_duplicates()
    return [(str(shape), str(strength), float(target)) for shape, strength, target in arms.to_numpy()]


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """What each setting changes in perplexity, entropy and variance; then what they are like."""
    charts = []
    for measure, title in JUDGED.items():
        ratio = measure == VARIANCE
        lines = _lines(rows, lambda *arm, measure=measure: changes(rows, *arm)[measure])
        said = "with over without" if ratio else "with less without"
        levels = ((float(ratio), "as without"),)
        charts.append(Chart(title, "τ", said, lines, log_x=True, log_y=ratio, levels=levels))
    for measure, title in (
        ("trace", "tr W, mean over heads"), ("frobenius", "‖W‖_F, mean over heads"),
        ("propagation_range", "Range of ρ(t), mean over heads"),
    ):  # fmt: skip
        own = rows[rows["measure"] == measure]
        lines = _lines(rows, lambda *arm, own=own: over_seeds(of_arm(own, *arm)))
        for place, shape in enumerate(rows["arm"].unique()):
            found = over_seeds(of_arm(own, shape))
            lines.append(series(f"{shape}, without", [LEFT / 1.07**place], [found], "dots"))
        charts.append(Chart(title, "τ", "", lines, log_x=True, log_y=measure == "frobenius"))
    return charts


def _lines(rows: pd.DataFrame, read: Callable[..., Reading]) -> list[Series]:
    """A series for each shape and strength along τ, drawn a little aside so that none hides another."""
    groups: dict[tuple[str, str], list[float]] = {}
    for shape, strength, target in penalised(rows):
        groups.setdefault((shape, strength), []).append(target)
    found = []
    for place, (group, targets) in enumerate(groups.items()):
        x, y = [target * 1.07**place for target in targets], [read(*group, target) for target in targets]
        found.append(series(", ".join(group), x, y, "dots"))
    return found


CLAIM = Claim(
    "locater", "LocAteR: a narrow spectrum, higher entropy, lower perplexity", experiment=experiment,
    judge=judge, draw=draw,
    expected="A penalty that shrinks the scale of the spectrum of W and keeps its mean lowers the variance "
    "of the eigenvalues, raises the entropy of attention and lowers the perplexity of a language model.",
    method="Language models of one layer and one head with a post-norm, and deeper ones with pre-norms, with "
    "and without LocAteR, of several strengths λ and targets τ of tr W, judged on held-out text. Differences "
    f"(of the variance: ratios) are paired by seed. What decides is one setting, {MAIN} in one layer, the "
    "lab’s own example; the others stand beside.",
    reconstructed="The published loss is not available: λ·mean ‖W‖_F²/d + mean (tr W − τ)² over heads stands "
    "for it. The shape (one layer, one head, 128 dimensions, post-norm) is as a third party reports it. "
    "Tokens are characters, and text is that of --data, which at the scale full should be WikiText-2: no "
    "perplexity here is one of the paper’s.",
    measures=("spectrum_variance", "normalised_entropy", "trace", "frobenius"),
)  # fmt: skip
