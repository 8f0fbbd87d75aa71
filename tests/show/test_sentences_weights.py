"""Every sentence on weights: where it must be said and, at the edge of its condition, where it must not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from isoscope.results.row import Row
from tests.show.made import row
from tests.show.said import HEADLINE, Case, Table, cases

NAN = math.nan


def trace(value: float, regime: str, head: int = 0, **at: object) -> Row:
    place = {"kind": "query_key", "layer": 1, "head": head} | at
    return row("trace", value, note=f"regime: {regime}", **place)


def heads(*regimes: str) -> list[Row]:
    return [trace(4.0, regime, head) for head, regime in enumerate(regimes)]


def slope(low: float, high: float, layer: int = 1) -> Row:
    return row("walk_slope", (low + high) / 2, low=low, high=high, kind="query_key", layer=layer)


def agreement(own: float, mirrored: float, p: float) -> list[Row]:
    place = {"kind": "query_key", "layer": 1}
    return [
        row("propagation_agreement", own, head=0, **place),
        row("propagation_agreement", own, null=(0.2 + mirrored) / 2, p=p, **place),
    ]


def vocabulary(value: float, kind: str = "input_vocabulary", null: float = 0.0, **at: object) -> list[Row]:
    return [row("mean_cosine", value, kind=kind, null=null, **at)]


def stage(measure: str, kind: str, value: float, half: float | None = 0.01) -> list[Row]:
    return [row(measure, value, half=half, kind=f"norm_{kind}")]


def norm(measure: str, value: float) -> Row:
    return row(measure, value, kind="norm")


HIDDEN = row("mean_cosine_between", 0.4, half=0.01, kind="output")
DRIFTED = [*stage("relative_drift", "before", 0.4), *stage("relative_drift", "scaled", 0.5)]
INPUT, OUTPUT = vocabulary(0.3), vocabulary(0.6, "output_vocabulary")

FOUND: Table = {
    HEADLINE: (
        # where heads would look
        (
            "For inputs that walk at random, the weights decide where 2 of 3 heads would look: in the late "
            "half (1) and in the early half (1).",
            heads("late", "early", "undecided"),
            heads("late", "undecided", "undecided"),
        ),
        ("within 25 % of the length past the middle (1)", heads("middle", "late"), heads("late", "late")),
        ("within 25 % of", [trace(4.0, "middle"), trace(2.0, "late", 1)], [trace(2.0, "middle")]),
        (
            "takes the relative drift",
            [
                *INPUT,
                *stage("relative_drift", "scaled", 0.75, 0.2),
                *stage("relative_drift", "output", 0.25, 0.2),
            ],
            [
                *INPUT,
                *stage("relative_drift", "scaled", 0.75, 0.36),
                *stage("relative_drift", "output", 0.25, 0.36),
            ],
        ),
        (
            "takes the relative drift",
            [
                *INPUT,
                *stage("relative_drift", "scaled", 0.25, 0.2),
                *stage("relative_drift", "output", 0.75, 0.2),
            ],
            [
                *INPUT,
                *stage("relative_drift", "scaled", 0.25, 0.36),
                *stage("relative_drift", "output", 0.75, 0.36),
            ],
        ),
        ("within 25 % of the length before the middle", heads("middle_early"), heads("middle")),
        (
            "the weights decide where 0 of 2 heads would look",
            heads("undecided", "else"),
            heads("late", "else"),
        ),
        ("; 1 would let all signal pass, wherever it is.", heads("uniform", "late"), heads("late")),
        ("1 would let half of the signal pass, wherever", heads("uniform_half"), heads("uniform")),
        ("1 would let no signal pass", heads("vanishing"), heads("uniform")),
        (
            "On this data the inputs of attention do not walk at random (walk slope 0.45; a "
            "walk has 1), so the theory of where heads look does not apply. For inputs that "
            "do, the",
            [*heads("late"), slope(0.401, 0.499)],
            [*heads("late"), slope(0.4, 0.5)],
        ),
        (
            "does not apply",
            [*heads("late"), slope(0.1, 0.2), slope(0.1, 0.2, layer=2)],
            [*heads("late"), slope(0.1, 0.2), slope(0.1, 1.2, layer=2)],
        ),
        (
            "do not walk at random",
            [*heads("late"), row("walk_slope", 0.499, kind="query_key", layer=1)],
            [*heads("late"), row("walk_slope", 0.5, kind="query_key", layer=1)],
        ),
        # vocabularies and the final norm
        ("vocabulary is not anisotropic (mean cosine", vocabulary(0.0095), vocabulary(0.01)),
        ("vocabulary is weakly anisotropic", vocabulary(0.099), vocabulary(0.1)),
        (
            "vocabulary is anisotropic",
            vocabulary(0.7, null=0.2),
            vocabulary(0.701, null=0.2),
        ),
        ("vocabulary is strongly anisotropic", vocabulary(0.501), vocabulary(0.5)),
        (
            "The input vocabulary is anisotropic (mean cosine 0.30) and the output vocabulary "
            "is strongly anisotropic (mean cosine 0.60); random directions have 0.",
            [*INPUT, *OUTPUT],
            INPUT,
        ),
        ("The output vocabulary is strongly", OUTPUT, [*INPUT, *OUTPUT]),
        (  # so many models are named
            "e: the input vocabulary is",
            [r for model in "bcde" for r in vocabulary(0.3, model=model)],
            [r for model in "abcde" for r in vocabulary(0.3, model=model)],
        ),
        (
            "The final norm’s β takes the relative drift from 0.50 to 0.48",
            [*INPUT, *stage("relative_drift", "scaled", 0.5), *stage("relative_drift", "output", 0.479)],
            [*INPUT, *stage("relative_drift", "scaled", 0.5), *stage("relative_drift", "output", 0.486)],
        ),
        (
            "takes the relative drift from 0.50 to 0.52",
            [*INPUT, *stage("relative_drift", "scaled", 0.5), *stage("relative_drift", "output", 0.521)],
            [*INPUT, *stage("relative_drift", "scaled", 0.5), *stage("relative_drift", "output", 0.9, None)],
        ),
        (
            "The final norm’s β points along the mean of the vocabulary (cosine 0.30)",
            [*INPUT, norm("bias_vocabulary_cosine", 0.3)],
            [*INPUT, norm("bias_vocabulary_cosine", 0.299)],
        ),
        (
            "β points against the mean",
            [*INPUT, norm("bias_vocabulary_cosine", -0.3)],
            [*INPUT, norm("bias_vocabulary_cosine", 0.3)],
        ),
        (
            "(mean cosine 0.60)",
            [*vocabulary(0.3, step=0), *vocabulary(0.6, step=9)],
            [*vocabulary(0.6, step=0), *vocabulary(0.3, step=9)],
        ),
        ("was not measured", [row("mean_cosine", 0.3)], INPUT),
        (
            "No anisotropy is shown in the output of m",
            [*INPUT, replace(HIDDEN, low=NAN)],
            INPUT,
        ),
        (
            "b: the input vocabulary is",
            [*INPUT, row("mean_cosine", 0.3, kind="input_vocabulary", model="b")],
            [row("mean_cosine", 0.3, kind="input_vocabulary", model="b")],
        ),
    ),
    "query_key": (
        (
            "The regime of 2 of 3 heads is undecided.",
            heads("late", "undecided", "else"),
            heads("late", "late", "else"),
        ),
        ("heads is undecided", heads("late"), [trace(NAN, "late")]),
        (
            "The theory is of self-attention",
            [trace(1.0, "late", kind="cross_query_key")],
            [*heads("late"), row("trace", 4.0, kind="query_key", layer=1)],
        ),
        (
            "The theory is of self-attention; 2 heads of cross-attention are not counted.",
            [trace(1.0, "late", head, kind="cross_query_key") for head in (0, 1)],
            heads("late", "late"),
        ),
        (
            "The squared distance of two inputs grows with their distance s as s to the power "
            "0.95; a random walk has 1.",
            [slope(0.9, 1.0)],
            [slope(0.1, 0.2)],
        ),
        (
            ", so the theory’s premise does not hold in layer 1",
            [slope(0.1, 0.2), slope(0.9, 1.0, layer=2)],
            [slope(0.8, 0.9), slope(0.9, 1.0, layer=2)],
        ),
        (
            "Attention ranks positions as a head’s own weights predict with Spearman’s r = "
            "0.40 (mean over 1 heads), better than other heads and mirror images predict "
            "(0.15; p = 0.049).",
            agreement(0.4, 0.1, 0.049),
            agreement(0.4, 0.1, 0.051),
        ),
        (
            ", not better than other heads",
            agreement(0.4, 0.1, 0.051),
            agreement(0.4, 0.1, 0.049),
        ),
        ("; p < 0.001)", agreement(0.4, 0.1, 0.000999), agreement(0.4, 0.1, 0.001)),
        (
            "(mean over 2 heads)",
            [
                *agreement(0.4, 0.1, 0.01),
                row("propagation_agreement", 0.4, head=1, kind="query_key", layer=1),
            ],
            agreement(0.4, 0.1, 0.01),
        ),
        ("r = 0.40 (mean over 1 heads).", agreement(0.4, 0.1, 0.01)[:1], agreement(0.4, 0.1, 0.01)),
    ),
    "vocabulary": (
        (
            "The input vocabulary is anisotropic: mean cosine 0.30, centred 0.01, without its "
            "top directions 0.02; random directions have 0.",
            [
                *INPUT,
                *vocabulary(0.01, "input_vocabulary_centred"),
                *vocabulary(0.02, "input_vocabulary_without_top"),
            ],
            INPUT,
        ),
        ("random directions have 0.10.", vocabulary(0.3, null=0.1), vocabulary(0.3, null=NAN)),
    ),
    "norm": (
        (
            "The relative drift is 0.40 before the norm, 0.50 after × γ and 0.42 after.",
            [*DRIFTED, *stage("relative_drift", "output", 0.421)],
            [*DRIFTED, *stage("relative_drift", "output", 0.414)],
        ),
        (
            "after (indistinguishable).",
            [*DRIFTED, *stage("relative_drift", "output", 0.386)],
            [*DRIFTED, *stage("relative_drift", "output", 0.379)],
        ),
        (
            "The mean cosine is 0.40 before the norm and 0.20 after.",
            [*stage("mean_cosine_between", "before", 0.4), *stage("mean_cosine_between", "output", 0.2)],
            stage("mean_cosine_between", "before", 0.4),
        ),
        (
            "The cosine of β with the direction that would cancel the mean is 0.8.",
            [norm("bias_cancels", 0.8)],
            [norm("bias_cancels", NAN)],
        ),
    ),
}
CASES = cases(FOUND)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
