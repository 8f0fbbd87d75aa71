"""Every sentence on parts of a cloud, on neighbours and on comparisons: where it is said, and where not."""

from __future__ import annotations

import math
from functools import partial

import pytest

from isoscope.results.row import Row
from isoscope.show.say import families
from tests.show.made import row
from tests.show.said import Case, Table, cases, layers, said

NAN = math.nan
INSIDE, SAME = "intra_similarity_adjusted", "self_similarity_adjusted"


def bands(
    one: float,
    other: float,
    *,
    kind: str = "relative_drift",
    of: str = "rare",
    half: float = 0.05,
    **at: object,
) -> list[Row]:
    """Tokens of one band, and frequent ones."""
    return [row(f"{kind}_{who}", value, half=half, **at) for who, value in ((of, one), ("frequent", other))]


def ranked(*values: float, drift: str = "drift", note: str = "nominal p = 0.02") -> list[Row]:
    """Rank correlations of so many models."""
    return [
        row(f"spearman_{drift}", value, model=f"m{at}", kind="comparison", n=8, note=note)
        for at, value in enumerate(values)
    ]


FOUND: Table = {
    "dimensions": (
        (
            "Dimensions that vary far more than the rest: up to 2 in layer 1 (dimension 7).",
            layers("outlier_dimensions", 1, 2, half=None, note="dimension 7"),
            layers("outlier_dimensions", 2, 2, half=None, note="dimension 7"),
        ),
        (
            "Massive activations: 0.",
            layers("massive_activations", 0, 0, half=None),
            layers("massive_activations", 0, 1, half=None),
        ),
    ),
    "tokens": (
        (
            "Rare tokens drift further than frequent tokens in layer 0 (0.5 against 0.39)",
            bands(0.5, 0.39),
            bands(0.5, 0.44),
        ),
        ("Rare tokens drift", bands(0.75, 0.25, half=0.2), bands(0.75, 0.25, half=0.36)),
        ("Frequent tokens drift", bands(0.25, 0.75, half=0.2), bands(0.25, 0.75, half=0.36)),
        (
            "Rare tokens drift further than frequent tokens in layer 0 (",
            [*bands(0.5, 0.3), row("relative_drift_rare", 0.9, half=0.05, layer=1)],
            [*bands(0.5, 0.3), *bands(0.9, 0.3, layer=1)],
        ),
        ("Frequent tokens drift further than rare tokens", bands(0.39, 0.5), bands(0.44, 0.5)),
        (
            "in layers 0–1, most in layer 1 (0.9 against 0.2)",
            [*bands(0.5, 0.3), *bands(0.9, 0.2, layer=1)],
            [*bands(0.5, 0.44), *bands(0.9, 0.2, layer=1)],
        ),
        (
            "; frequent tokens drift further than rare tokens in layer 1",
            [*bands(0.5, 0.3), *bands(0.3, 0.5, layer=1)],
            [*bands(0.5, 0.3), *bands(0.5, 0.3, layer=1)],
        ),
        (
            "Which drift further is indistinguishable from chance: rare tokens or frequent tokens.",
            bands(0.5, 0.44),
            bands(0.5, 0.39),
        ),
        ("Tokens in between drift further", bands(0.5, 0.3, of="middle"), bands(0.5, 0.3)),
        (
            "Rare tokens point more alike than frequent tokens",
            bands(0.5, 0.3, kind="mean_cosine"),
            bands(0.5, 0.3),
        ),
        (
            "The cosine of two vectors of one token, minus that of any two vectors, is 0.2 (95 % interval "
            "0.091–0.3); chance gives 0.09.",
            [row(SAME, 0.2, low=0.091, high=0.3, null=0.09)],
            [row(SAME, 0.2, null=NAN)],
        ),
        (
            "It is indistinguishable from chance.",
            [row(SAME, 0.2, low=0.09, high=0.3, null=0.09)],
            [row(SAME, 0.2, low=0.091, high=0.3, null=0.09)],
        ),
        ("cannot be compared with chance", [row(SAME, 0.2)], [row(SAME, 0.2, half=0.01)]),
    ),
    "sequences": (
        (
            "It is indistinguishable from chance in layer 1.",
            layers(INSIDE, 0.2, 0.09, null=0.09),
            layers(INSIDE, 0.2, 0.2, null=0.09),
        ),
        (
            "The part of the norm left after subtracting a sequence’s mean is at least 0.7 (95 % interval "
            "0.69–0.71) in layer 1; 0 would mean that its vectors coincide.",
            layers("rank_residual", 0.9, 0.7),
            layers("rank_residual", 0.7),
        ),
    ),
    "sample": (
        (
            "is 8; an isotropic cloud has 0.",
            layers("intrinsic_dimension", 8, 8.0001, half=None),
            layers("intrinsic_dimension", 8, 9, half=None),
        ),
        (
            "The uniformity of directions is −3; 0 would mean that all coincide, and −4 that they fill the "
            "sphere evenly.",
            [row("uniformity", -3, null=-4)],
            [row("uniformity", -3, null=NAN)],
        ),
    ),
    "partition": (
        (
            "The partition isotropy of the vectors as they are is 0.3; random directions give 0.9.",
            [row("partition_isotropy", 0.3, null=0.9)],
            [row("partition_isotropy", 0.3), row("partition_isotropy_unit", 0.3)],
        ),
    ),
    "comparison": (
        (
            "Mean cosine and drift, Spearman’s r over layers: −0.50 (8 layers, nominal p = 0.02) in m0.",
            ranked(-0.5),
            ranked(-0.5, note="nominal p = 0"),
        ),
        ("nominal p", ranked(-0.5), [row("pearson_drift", 0.5, kind="comparison")]),
        ("(8 layers)", ranked(-0.5, note="nominal p = 0"), ranked(-0.5)),
        ("(8 layers)", ranked(-0.5, note="a remark"), ranked(-0.5)),
        ("Mean cosine and relative drift, ", ranked(0.5, drift="relative_drift"), ranked(0.5)),
        (
            "0.90 (16384 layers) over all models",
            [*ranked(0.5), row("spearman_drift", 0.9, model="all models", kind="comparison")],
            ranked(0.5, 0.9),
        ),
        (
            "from 0.00 (8 layers, nominal p = 0.02) in m0 to 0.40",
            ranked(*(at / 10 for at in range(5))),
            ranked(*(at / 10 for at in range(4))),
        ),
        (
            "Layers of one model are not independent, so p is nominal. With equal norms the mean cosine is "
            "about the square of the relative drift: they are not independent evidence.",
            ranked(0.5),
            [row("pearson_drift", 0.5, kind="comparison")],
        ),
    ),
}
CASES = cases(FOUND)
LINED = [  # every measure with a line, and the family that has it
    (family, measure)
    for family, known in families.FAMILIES.items()
    for part in known.parts if not callable(part)
    for measure in ((part,) if isinstance(part, str) else part)
]  # fmt: skip
CASES += [
    Case(measure, words, partial(said, rows, family), str)
    for family, measure in LINED
    for kind in families.FAMILIES[family].kinds[:1] or ("norm",)
    for rows in [layers(measure, 0.2, 0.4, null=0.1, kind=kind)]
    for words in [families.LINES[measure].text.partition("{")[0]]
]


def test_every_line_belongs_to_a_family() -> None:
    assert {measure for _, measure in LINED} == set(families.LINES)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
