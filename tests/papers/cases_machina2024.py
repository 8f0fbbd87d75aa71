"""For each claim of machina2024: rows that agree, that contradict, and that leave it undecided."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from isoscope.papers.machina2024.weighing import GRADIENT, I_OWN, I_UNIT, INPUT, OUTPUT, PARAMETERS, TIED
from isoscope.results.row import Row
from tests.papers.cases import Case, row
from tests.typed import frame

Seeds = Sequence[float]
BETWEEN = "mean_cosine_between"


def at(
    kind: str, measure: str, values: Seeds, model: str = "width 64", step: int = 600, layer: int | None = None
) -> list[Row]:
    """One row a seed."""
    return [
        row(model, measure, value, seed=seed, kind=kind, layer=layer, step=step)
        for seed, value in enumerate(values)
    ]


def table(*parts: list[Row]) -> pd.DataFrame:
    return frame([each for part in parts for each in part])


def fall(last: Seeds, unit: Seeds) -> pd.DataFrame:
    first = [0.5, 0.51, 0.49]
    return table(
        *(at(kind, measure, first, step=0) for kind in (OUTPUT, INPUT) for measure in (I_OWN, I_UNIT)),
        at(OUTPUT, I_OWN, last),
        at(OUTPUT, I_UNIT, unit),
        at(INPUT, I_OWN, first),
    )


def sides(entering: Seeds, leaving: Seeds) -> pd.DataFrame:
    both = ((INPUT, entering), (OUTPUT, leaving))
    return table(*(at(kind, measure, values) for kind, values in both for measure in (I_OWN, I_UNIT)))


def centred(values: Seeds) -> pd.DataFrame:
    high = [0.99, 0.98, 0.985]
    return table(
        at(f"{INPUT}_centred", I_OWN, high),
        at(f"{OUTPUT}_centred", I_OWN, values),
        at(f"{TIED}_centred", I_OWN, values, "width 64, tied"),
        at(OUTPUT, I_OWN, [0.2, 0.21, 0.19]),
    )


def norm(cancels: Seeds, after: Seeds) -> pd.DataFrame:
    return table(
        at("norm", "bias_cancels", cancels),
        at("norm", "drift_removed_by_bias", cancels),
        at("norm_scaled", BETWEEN, [0.3, 0.31, 0.29]),
        at("norm_output", BETWEEN, after),
    )


def size(matrix: Seeds, states: Seeds) -> pd.DataFrame:
    small, large = "width 32", "width 128"
    return table(
        at("model", PARAMETERS, [1e4] * 3, small),
        at("model", PARAMETERS, [1e6] * 3, large),
        *(at(OUTPUT, measure, [0.5, 0.51, 0.49], small) for measure in (I_OWN, I_UNIT)),
        *(at(OUTPUT, measure, matrix, large) for measure in (I_OWN, I_UNIT)),
        at("output", BETWEEN, [0.5, 0.51, 0.49], small),
        at("output", BETWEEN, states, large),
    )


def states(values: Seeds, other: Seeds) -> pd.DataFrame:
    return table(
        at("layer", BETWEEN, [0.01, 0.02, 0.015], layer=0),
        at("layer", BETWEEN, values, layer=1),
        at("output", BETWEEN, [0.01, 0.02, 0.015]),
        at("layer", BETWEEN, other, "width 128", layer=1),
    )


def theory(correlation: Seeds, rare: Seeds, pushed: Seeds) -> pd.DataFrame:
    low = [0.1, 0.11, 0.09]
    return table(
        at(OUTPUT, "frequency_drift_correlation", correlation),
        at(OUTPUT, "mean_cosine_rare", rare),
        at(OUTPUT, "mean_cosine_frequent", low),
        at(GRADIENT, "mean_cosine_rare", pushed),
        at(GRADIENT, "mean_cosine_frequent", low),
    )


def hidden(rare: Seeds) -> pd.DataFrame:
    return table(
        at("output", "mean_cosine_rare", rare),
        at("output", "mean_cosine_frequent", [0.1, 0.11, 0.09]),
        at("output", "frequency_correlation", [0.0, 0.01, -0.01]),
    )


def titles(*curves: Seeds) -> pd.DataFrame:
    """The mean cosine at five steps, a curve a seed, while I(W) falls."""
    rows = []
    for seed, curve in enumerate(curves):
        for step, value in enumerate(curve):
            rows.append(
                row("width 64", "mean_cosine", value, seed=seed, kind="output", layer=None, step=step)
            )
            fallen = 1 - 0.1 * step
            rows.append(row("width 64", I_OWN, fallen, seed=seed, kind=OUTPUT, layer=None, step=step))
    return frame(rows)


UP, DOWN = [0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1]
LOW, HIGH, ANY = [0.1, 0.12, 0.11], [0.9, 0.88, 0.91], [0.1, 0.5, 0.9]
MINUS, PLUS = [-0.5, -0.52, -0.49], [0.5, 0.52, 0.49]

CASES = {
    "vocabulary-along-training": Case(fall(LOW, LOW), fall(HIGH, HIGH), fall(LOW, ANY)),
    "input-against-output": Case(sides(HIGH, LOW), sides(LOW, HIGH), sides(ANY, [0.5, 0.5, 0.5])),
    "centring": Case(centred([0.95, 0.96, 0.955]), centred([0.6, 0.61, 0.59]), centred([0.8, 0.9, 0.99])),
    "final-norm": Case(norm(PLUS, LOW), norm(MINUS, HIGH), norm([-0.5, 0.1, 0.6], LOW)),
    "small-against-large": Case(size(HIGH, LOW), size(LOW, HIGH), size(ANY, LOW)),
    "isotropic-transformers": Case(
        states([0.03, 0.04, 0.035], HIGH), states(HIGH, HIGH), states([0.05, 0.1, 0.15], HIGH)
    ),
    "frequency-theory": Case(theory(PLUS, LOW, HIGH), theory(MINUS, HIGH, HIGH), theory(MINUS, ANY, HIGH)),
    "frequency-hidden-states": Case(hidden([0.1, 0.11, 0.095]), hidden(HIGH), hidden([0.05, 0.1, 0.3])),
    "both-titles": Case(titles(UP, UP, UP), titles(DOWN, DOWN, DOWN), titles(UP, DOWN, DOWN)),
}
