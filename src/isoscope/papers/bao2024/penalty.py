"""Claim: LocAteR narrows the spectrum of W, and with it entropy rises and perplexity falls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from isoscope.formatting import short
from isoscope.lab.train.experiment import Experiment
from isoscope.papers.bao2024.models import SHALLOW, STRENGTH, TARGET, deep, locater, settings, shallow
from isoscope.papers.bao2024.reading import at_end, looked
from isoscope.papers.claims import Claim, Found, Verdict, all_of, is_above, is_below, lacking
from isoscope.papers.intervals import by_seed, over_seeds, paired
from isoscope.papers.lines import series
from isoscope.papers.workshop import Workshop, read_training
from isoscope.results.reading import Reading
from isoscope.show.charts import Chart, Series

NONE = "none"
VARIANCE = "spectrum_variance"
OF_TRAINING = ("normalised_entropy", "rank_residual")
OF_WEIGHTS = (VARIANCE, "spectrum_mean", "trace", "frobenius", "spectral_norm")
OF_DATA = ("propagation_mean", "propagation_range")
JUDGED = {
    "perplexity": "Perplexity: change",
    "normalised_entropy": "Normalised entropy: change",
    VARIANCE: "Variance of the eigenvalues: ratio",
}


def called(strength: float, target: float) -> str:
    """A setting of LocAteR as an arm's name has it.

    >>> called(0.1, 1.0)
    'λ 0.1, τ 1'
    """
    return f"λ {strength:g}, τ {target:g}"


MAIN = called(STRENGTH, TARGET)
LEFT = 0.35  # where models without LocAteR, which have no τ, are drawn on its axis


def arm(shape: str, setting: str) -> str:
    """What rows call a model of a shape with this setting."""
    return f"{shape}: {setting}"


def asked_of(workshop: Workshop, tried: Sequence[tuple[float, float]]) -> list[tuple[str, int, Experiment]]:
    """Every training, without LocAteR and with each of these settings: arm, seed and experiment."""
    found = []
    for seed in range(workshop.seeds):
        found.append((arm(SHALLOW, NONE), seed, shallow(workshop, seed, "")))
        for each in tried:
            found.append((arm(SHALLOW, called(*each)), seed, shallow(workshop, seed, locater(*each))))
        found += [(arm(deeper(workshop), NONE), seed, deep(workshop, seed, narrow=False))]
        found += [(arm(deeper(workshop), MAIN), seed, deep(workshop, seed, narrow=True))]
    return found


def deeper(workshop: Workshop) -> str:
    """What the deeper shape is called."""
    size = workshop.scale.arm
    return f"{size.layers} layers, {size.heads} heads"


def experiment(workshop: Workshop) -> Found:
    """Loss, entropy, spectra and ρ(t) of every arm and seed at the end of training."""
    ended, lost = workshop.train(asked_of(workshop, settings(workshop)))
    parts: list[pd.DataFrame] = []
    for each in ended:
        rows = read_training(each.folder, ("loss", *OF_TRAINING), model=each.name, seed=each.seed)
        loss = rows["measure"] == "loss"
        perplexity = rows[loss].assign(measure="perplexity", value=np.exp(rows.loc[loss, "value"]))
        parts += [rows[~loss], perplexity]
    for rows, _ in looked(workshop, [at_end(each, workshop.device) for each in ended]):
        mine = rows["measure"].isin([*OF_WEIGHTS, *OF_DATA]) & rows["head"].isna()
        parts.append(rows[mine])
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


def changes(rows: pd.DataFrame, shape: str, setting: str) -> dict[str, Reading]:
    """What LocAteR changes, by measure: differences of means over layers, paired by seed.

    A variance is multiplied: its interval is of the ratio, by way of logarithms.
    """
    found = {}
    for name in JUDGED:
        own = rows[rows["measure"] == name]
        own = own.assign(value=np.log(own["value"])) if name == VARIANCE else own
        first, second = (by_seed(own[own["model"] == arm(shape, each)]) for each in (NONE, setting))
        found[name] = paired(first, second)
    log = found[VARIANCE]
    value, low, high = (math.exp(end) for end in (log.value, log.low, log.high))
    return {**found, VARIANCE: Reading(value, log.n, low=low, high=high)}


def judge(rows: pd.DataFrame) -> Verdict:
    """At the setting that was chosen beforehand, in one layer: variance down, entropy up, perplexity down."""
    found = changes(rows, SHALLOW, MAIN)
    tried = [setting for shape, setting in arms(rows) if shape == SHALLOW and setting != NONE]
    each = [changes(rows, SHALLOW, setting) for setting in tried]
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
    for shape in dict.fromkeys(shape for shape, _ in arms(rows) if shape != SHALLOW):
        own = changes(rows, shape, MAIN)
        details += (
            f" In {shape} {MAIN} multiplies the variance by {own[VARIANCE].said} and changes the others by "
            f"{own['normalised_entropy'].said} and {own['perplexity'].said}."
        )
    parts = [
        is_below(found[VARIANCE], 1),
        is_above(found["normalised_entropy"], 0),
        is_below(found["perplexity"], 0),
    ]
    return replace(all_of(parts, said + lacking(rows)), details=details)


def arms(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Shapes and settings, in their order."""
    pairs = [str(model).partition(": ") for model in rows["model"].unique()]
    return [(shape, setting) for shape, _, setting in pairs]


def draw(rows: pd.DataFrame, points: pd.DataFrame) -> list[Chart]:
    """What each setting changes in perplexity, entropy and variance; then what they are like."""
    charts = []
    for measure, title in JUDGED.items():
        ratio = measure == VARIANCE
        lines = [
            _dots(group, [changes(rows, shape, setting)[measure] for shape, setting in group.arms])
            for group in _groups(rows)
        ]
        said = "with over without" if ratio else "with less without"
        levels = ((float(ratio), "as without"),)
        charts.append(Chart(title, "τ", said, lines, log_x=True, log_y=ratio, levels=levels))
    for measure, title in (
        ("trace", "tr W, mean over heads"),
        ("frobenius", "‖W‖_F, mean over heads"),
        ("propagation_range", "Range of ρ(t), mean over heads"),
    ):
        own = rows[rows["measure"] == measure]
        lines = [
            _dots(group, [over_seeds(own[own["model"] == arm(*each)]) for each in group.arms])
            for group in _groups(rows)
        ]
        lines += [
            series(
                f"{shape}, without",
                [LEFT / 1.07**place],
                [over_seeds(own[own["model"] == arm(shape, NONE)])],
                "dots",
            )
            for place, shape in enumerate(dict.fromkeys(shape for shape, _ in arms(rows)))
        ]
        charts.append(Chart(title, "τ", "", lines, log_x=True, log_y=measure == "frobenius"))
    return charts


@dataclass(frozen=True)
class _Group:
    """Arms of one shape and one strength, by their targets; drawn a little aside, not over each other."""

    name: str
    arms: tuple[tuple[str, str], ...]
    aside: float


def _groups(rows: pd.DataFrame) -> list[_Group]:
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for shape, setting in arms(rows):
        if setting != NONE:
            found.setdefault((shape, setting.partition(",")[0]), []).append((shape, setting))
    return [
        _Group(f"{shape}, {strength}", tuple(arms), 1.07**place)
        for place, ((shape, strength), arms) in enumerate(found.items())
    ]


def _dots(group: _Group, found: Sequence[Reading]) -> Series:
    x = [float(setting.rpartition("τ ")[2]) * group.aside for _, setting in group.arms]
    return series(group.name, x, found, style="dots")


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
