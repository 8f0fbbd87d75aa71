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
    note = f"other heads 0.200, mirrored {mirrored:.3f}; p = {p:.3g}"
    return [
        row("propagation_agreement", own, head=0, **place),
        row("propagation_agreement", own, note=note, **place),
    ]


def vocabulary(value: float, kind: str = "input_vocabulary", null: float = 0.0, **at: object) -> list[Row]:
    return [row("mean_cosine", value, kind=kind, null=null, **at)]


def stage(measure: str, kind: str, value: float, half: float | None = 0.01) -> list[Row]:
    return [row(measure, value, half=half, kind=f"norm_{kind}")]


def norm(measure: str, value: float) -> Row:
    return row(measure, value, kind="norm")


PARTITIONS = [
    row(f"partition_isotropy{form}", 0.2, kind="input_vocabulary", null=0.9) for form in ("_unit", "")
]
HIDDEN = row("mean_cosine_between", 0.4, half=0.01, kind="output")
DRIFTED = [*stage("relative_drift", "before", 0.4), *stage("relative_drift", "scaled", 0.5)]
INPUT, OUTPUT = vocabulary(0.3), vocabulary(0.6, "output_vocabulary")
ON_DATA = row("trace_on_data", 4.0, note="regime: undecided", kind="query_key", layer=1, head=0)

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
                *stage("relative_drift", "scaled", 0.75, 0.25),
                *stage("relative_drift", "output", 0.25, 0.25),
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
                *stage("relative_drift", "scaled", 0.25, 0.25),
                *stage("relative_drift", "output", 0.75, 0.25),
            ],
        ),
        ("within 25 % of the length before the middle", heads("middle_early"), heads("middle")),
        ("decide where the one head would look", heads("late"), heads("late", "late")),
        (
            "the weights of the one head decide nothing about where it looks.",
            heads("undecided"),
            heads("undecided", "undecided"),
        ),
        (
            "of 2 heads decide nothing about where they look",
            heads("undecided", "else"),
            heads("late", "else"),
        ),
        ("; 1 would let all signal pass, wherever it is.", heads("uniform", "late"), heads("late")),
        ("1 would let half of the signal pass, wherever", heads("uniform_half"), heads("uniform")),
        ("1 would let no signal pass", heads("vanishing"), heads("uniform")),
        (
            "On this data the inputs of attention do not walk at random (walk slope 0.45 in layer "
            "1, where a walk has 1), so the theory of where heads look does not apply. For inputs that do",
            [*heads("late"), slope(0.401, 0.499)],
            [*heads("late"), slope(0.4, 0.5)],
        ),
        (
            "in all layers, where a walk has 1)",
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
            "The input vocabulary is anisotropic (mean cosine 0.30), the output vocabulary strongly "
            "anisotropic (mean cosine 0.60), where random directions have 0.",
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
            [*INPUT, *stage("relative_drift", "scaled", 0.5), *stage("relative_drift", "output", 0.481)],
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
            "The mean cosine between sequences of the output of m is",
            [*INPUT, replace(HIDDEN, low=NAN)],
            INPUT,
        ),
        (
            "b: the input vocabulary is",
            [*INPUT, row("mean_cosine", 0.3, kind="input_vocabulary", model="b")],
            [row("mean_cosine", 0.3, kind="input_vocabulary", model="b")],
        ),
        (
            "Little could be read of these weights: numbers on the final norm, but none on where heads would "
            "look, or on how a vocabulary lies.",
            [norm("norm_weight_size", 0.9)],
            [norm("norm_weight_size", 0.9), *INPUT],
        ),
        (
            "numbers on queries and keys, vocabularies and the final norm, but",
            [
                row("frobenius", 1.0, kind="query_key", layer=1, head=0),
                row("singular_entropy", 0.1, kind="output_vocabulary"),
                norm("norm_weight_size", 0.9),
            ],
            [norm("norm_weight_size", 0.9)],
        ),
        (
            "Nothing that was read of these weights is a number; the notes say why.",
            [norm("norm_weight_size", NAN)],
            [norm("norm_weight_size", 0.9)],
        ),
    ),
    "query_key": (
        (
            "2 of 3 heads are undecided; of the others the colour says where they would look.",
            heads("late", "undecided", "else"),
            heads("late", "late", "else"),
        ),
        ("heads are undecided", heads("late"), [trace(NAN, "late")]),
        ("; of the others the colour", heads("late", "undecided"), heads("undecided", "undecided")),
        (
            "undecided, 1 with the covariance of the inputs’ increments in W; of",
            [*heads("late"), ON_DATA],
            heads("late"),
        ),
        (
            "The trace of W goes from −1 (layer 1 head 1) to 4 (layer 1 head 0); random weights give 0.",
            [trace(4.0, "late"), trace(-1.0, "early", 1)],
            [trace(4.0, "late", null=NAN), trace(-1.0, "early", 1, null=NAN)],
        ),
        (
            "Averaged over heads, 0.6 of ‖W‖² is symmetric, of random weights 0.5.",
            [row("symmetric_share", 0.6, kind="query_key", layer=1, null=0.5)],
            [row("symmetric_share", 0.6, kind="query_key", layer=1, null=NAN)],
        ),
        (
            ", of random weights",
            [row("symmetric_share", 0.6, kind="query_key", layer=1, null=0.5)],
            [row("symmetric_share", 0.6, kind="query_key", layer=1, null=NAN)],
        ),
        ("; random weights give", heads("late"), [trace(4.0, "late", null=NAN)]),
        (
            "The theory is of self-attention",
            [trace(1.0, "late", kind="cross_query_key")],
            [*heads("late"), row("trace", 4.0, kind="query_key", layer=1)],
        ),
        (
            "is symmetric",
            [row("symmetric_share", 0.6, kind="query_key", layer=1)],
            [row("symmetric_share", 0.6, kind="query_key", layer=1, head=0)],
        ),
        (
            "The theory is of self-attention: 2 heads of cross-attention are not counted.",
            [trace(1.0, "late", head, kind="cross_query_key") for head in (0, 1)],
            heads("late", "late"),
        ),
        ("1 head of cross-attention is not", [trace(1.0, "late", kind="cross_query_key")], heads("late")),
        (
            "The squared distance of two inputs grows with their distance s as s to the power 0.95; it would "
            "be 1 if they walked at random.",
            [slope(0.9, 1.0)],
            [slope(0.1, 0.2)],
        ),
        (
            ", so the theory’s premise holds nowhere",
            [slope(0.1, 0.499)],
            [slope(0.1, 0.499), slope(0.1, 0.5, layer=2)],
        ),
        (
            ", which they do not in layer 1",
            [slope(0.1, 0.2), slope(0.9, 1.0, layer=2)],
            [slope(0.8, 0.9), slope(0.9, 1.0, layer=2)],
        ),
        (
            "Measured attention ranks the places as a head’s own weights predict with r = 0.40 (Spearman, "
            "one head), as those of the layer’s other heads predict with 0.20, and as the mirror "
            "images of those with 0.10: own predictions agree better than those of other heads (p = 0.049).",
            agreement(0.4, 0.1, 0.049),
            agreement(0.4, 0.1, 0.051),
        ),
        (
            "predictions do not agree better",
            agreement(0.4, 0.1, 0.051),
            agreement(0.4, 0.1, 0.049),
        ),
        ("(p < 0.001)", agreement(0.4, 0.1, 0.000999), agreement(0.4, 0.1, 0.001)),
        (", but no better than mirror images", agreement(0.4, 0.4, 0.01), agreement(0.4, 0.399, 0.01)),
        (
            "no better than mirror images",
            agreement(0.4, 0.5, 0.049),
            agreement(0.4, 0.5, 0.051),
        ),
        (
            "(Spearman, mean over 2 heads)",
            [
                *agreement(0.4, 0.1, 0.01),
                row("propagation_agreement", 0.4, head=1, kind="query_key", layer=1),
            ],
            agreement(0.4, 0.1, 0.01),
        ),
        ("r = 0.40 (Spearman, one head).", agreement(0.4, 0.1, 0.01)[:1], agreement(0.4, 0.1, 0.01)),
    ),
    "vocabulary": (
        (
            "The input vocabulary is anisotropic: mean cosine 0.30, where random directions have 0; centred "
            "0.01 and without its top directions 0.02.",
            [
                *INPUT,
                *vocabulary(0.01, "input_vocabulary_centred"),
                *vocabulary(0.02, "input_vocabulary_without_top"),
            ],
            INPUT,
        ),
        ("(by chance", PARTITIONS, [replace(r, null=NAN) for r in PARTITIONS]),
        ("random directions have 0.10.", vocabulary(0.3, null=0.1), vocabulary(0.3, null=NAN)),
        (
            "The partition isotropy of the input vocabulary is 0.2 in units of the mean norm (by chance 0.9) "
            "and 0.2 with the norms as they are (by chance 0.9).",
            PARTITIONS,
            PARTITIONS[:1],
        ),
        (
            "The hidden states that leave the model are another cloud: their mean cosine between sequences "
            "is 0.4 (95 % interval 0.39–0.41).",
            [*INPUT, HIDDEN],
            [HIDDEN],
        ),
    ),
    "norm": (
        (
            "The root mean square of γ is 0.9, and 3 of its entries stand out; β is 2 long.",
            [norm("norm_weight_size", 0.9), norm("norm_weight_outliers", 3.0), norm("norm_bias_size", 2.0)],
            [norm("norm_weight_size", 0.9), norm("norm_weight_outliers", 3.0)],
        ),
        (
            "γ is 0.9, without outliers.",
            [norm("norm_weight_size", 0.9), norm("norm_weight_outliers", 0.0)],
            [norm("norm_weight_size", 0.9)],
        ),
        (
            "The relative drift is 0.40 before the norm, 0.50 after × γ and 0.42 after it.",
            [*DRIFTED, *stage("relative_drift", "output", 0.421)],
            [*DRIFTED, *stage("relative_drift", "output", 0.419)],
        ),
        (
            "after it, no difference to be told from chance.",
            [*DRIFTED, *stage("relative_drift", "output", 0.381)],
            [*DRIFTED, *stage("relative_drift", "output", 0.379)],
        ),
        (
            "The mean cosine is 0.40 before the norm and 0.20 after it.",
            [*stage("mean_cosine_between", "before", 0.4), *stage("mean_cosine_between", "output", 0.2)],
            stage("mean_cosine_between", "before", 0.4),
        ),
        (
            "The cosine of β with what would cancel the mean is 0.80; at 1 it cancels.",
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
