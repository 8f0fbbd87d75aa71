"""Every sentence on parts of a cloud, on neighbours and on comparisons: where it is said, and where not."""

from __future__ import annotations

import math

import pytest

from isoscope.results.row import Row
from tests.show.made import row
from tests.show.said import Case, Table, cases, layers

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


def correlated(low: float, high: float, **at: object) -> list[Row]:
    return [row("frequency_correlation", (low + high) / 2, low=low, high=high, **at)]


def ranked(*values: float, drift: str = "drift", note: str = "nominal p = 0.02") -> list[Row]:
    """Rank correlations of so many models."""
    return [
        row(f"spearman_{drift}", value, model=f"m{at}", kind="comparison", n=8, note=note)
        for at, value in enumerate(values)
    ]


FOUND: Table = {
    "dimensions": (
        (
            "In layers 0–1, up to 2 dimensions vary far more than the rest (layer 1: dimension 7).",
            layers("outlier_dimensions", 1, 2, note="dimension 7"),
            layers("outlier_dimensions", 0, 2, note="dimension 7"),
        ),
        (
            "In layer 0, 1 dimension varies far more than the rest (dimension 7).",
            layers("outlier_dimensions", 1, note="dimension 7"),
            layers("outlier_dimensions", 2, note="dimension 7"),
        ),
        ("No dimension varies far more", layers("outlier_dimensions", 0), layers("outlier_dimensions", 0, 1)),
        ("are no massive activations", layers("massive_activations", 0), layers("massive_activations", 0, 1)),
        (
            "2 massive activations stand in layer 2 (dimension 5), as many in layer 3, fewer in layer 1.",
            layers("massive_activations", 0, 1, 2, 2, note="dimension 5"),
            layers("massive_activations", 0, 2, 2, 2, note="dimension 5"),
        ),
        ("stands in layer 0.", layers("massive_activations", 1), layers("massive_activations", 1, note="d")),
        ("fewer in", layers("massive_activations", 1, 2), layers("massive_activations", 2, 2)),
        ("as many in", layers("massive_activations", 2, 2), layers("massive_activations", 1, 2)),
        ("1 massive activation stands", layers("massive_activations", 1), layers("massive_activations", 2)),
        ("largest single number", layers("largest_activation", 5), layers("largest_activation", NAN)),
        (
            "The largest single number is 9 (layer 1: dimension 5).",
            layers("largest_activation", 8, 9, note="dimension 5"),
            layers("largest_activation", 9, 8, note="dimension 5"),
        ),
        ("is 9 (layer 1).", layers("largest_activation", 8, 9), layers("largest_activation", 9)),
    ),
    "tokens": (
        (
            "Rare tokens drift further than frequent tokens in layer 0 (0.5 against 0.39)",
            bands(0.5, 0.39),
            bands(0.5, 0.41),
        ),
        ("Rare tokens drift", bands(0.75, 0.25, half=0.2), bands(0.75, 0.25, half=0.25)),  # touching
        ("Frequent tokens drift", bands(0.25, 0.75, half=0.2), bands(0.25, 0.75, half=0.25)),
        (
            "Rare tokens drift further than frequent tokens in layer 0 (",
            [*bands(0.5, 0.3), row("relative_drift_rare", 0.9, half=0.05, layer=1)],
            [*bands(0.5, 0.3), *bands(0.9, 0.3, layer=1)],
        ),
        ("rare tokens lie further", correlated(-0.3, -0.001), correlated(-0.3, 0.0)),
        ("Frequent tokens drift further than rare tokens", bands(0.39, 0.5), bands(0.41, 0.5)),
        (
            "in layers 0–1, most in layer 1 (0.9 against 0.2)",
            [*bands(0.5, 0.3), *bands(0.9, 0.2, layer=1)],
            [*bands(0.5, 0.41), *bands(0.9, 0.2, layer=1)],
        ),
        (
            ", and frequent tokens drift further than rare tokens in layer 1",
            [*bands(0.5, 0.3), *bands(0.3, 0.5, layer=1)],
            [*bands(0.5, 0.3), *bands(0.5, 0.3, layer=1)],
        ),
        (
            "Whether rare tokens or frequent tokens drift further cannot be told from chance at this n.",
            bands(0.5, 0.41),
            bands(0.5, 0.39),
        ),
        ("Tokens in between drift further", bands(0.5, 0.3, of="middle"), bands(0.5, 0.3)),
        (
            "Rare tokens point more alike than frequent tokens",
            bands(0.5, 0.3, kind="mean_cosine"),
            bands(0.5, 0.3),
        ),
        (
            "In layer 0 rare tokens lie further along the mean (r = −0.15, 95 % interval −0.299 to −0.001).",
            correlated(-0.299, -0.001),
            correlated(-0.3, 0.0),
        ),
        (
            "frequent tokens lie further along the mean",
            correlated(0.001, 0.3),
            correlated(0.0, 0.3),
        ),
        (
            "−0.35 to −0.15, in layer 1)",
            [*correlated(-0.3, -0.1), *correlated(-0.35, -0.15, layer=1)],
            correlated(-0.35, -0.15, layer=1),
        ),
        (
            "rare tokens lie further along",
            correlated(-0.3, -0.1),
            [row("frequency_correlation", -0.2)],
        ),
        (
            "The vectors of one token in different sequences are more alike than any two by 0.2 in layer 0 "
            "to 0.4 in layer 1 (cosine, without an interval).",
            layers(SAME, 0.2, 0.4, half=None),
            layers(SAME, 0.2, -0.4, half=None),
        ),
        (
            "by −0.1 in layer 1 to 0.2 in layer 0, in layer 1 not beyond chance (cosine, without",
            layers(SAME, 0.2, -0.1, half=None),
            layers(SAME, 0.2, 0.001, half=None),
        ),
        (
            "cannot be told to be more alike than any two: by −0.1 (cosine, without an interval).",
            layers(SAME, -0.1, half=None),
            layers(SAME, 0.1, half=None),
        ),
    ),
    "sequences": (
        (
            "Vectors of one sequence are more alike than any two by 0.2 (95 % interval 0.091–0.3); by chance "
            "by 0.09.",
            [row(INSIDE, 0.2, low=0.091, high=0.3, null=0.09)],
            [row(INSIDE, 0.2, low=0.09, high=0.3, null=0.09)],
        ),
        (
            "Vectors of one sequence cannot be told to be more alike than any two: by 0.2",
            [row(INSIDE, 0.2, low=0.09, high=0.3, null=0.09)],
            [row(INSIDE, 0.2, low=0.091, high=0.3, null=0.09)],
        ),
        (
            ", in layer 1 not beyond chance; by chance",
            layers(INSIDE, 0.2, 0.09, null=0.09),
            layers(INSIDE, 0.2, 0.2, null=0.09),
        ),
        ("more alike than any two by 0.2", layers(INSIDE, 0.2, null=NAN), layers(INSIDE, 0.01, null=NAN)),
        ("; by chance by", layers(INSIDE, 0.2, null=0.09), layers(INSIDE, 0.2, null=NAN)),
        (
            "Of a sequence, at least 0.7 (95 % interval 0.69–0.71) in layer 1 is left without its mean; 0 "
            "would be a collapse to one vector.",
            layers("rank_residual", 0.9, 0.7),
            layers("rank_residual", 0.7),
        ),
        ("sequence, 0.7 (95 % interval", layers("rank_residual", 0.7), layers("rank_residual", 0.9, 0.7)),
    ),
    "layers": (
        (
            "The arrangement changes most on the way into layer 1: its CKA with the layer before is 0.7, "
            "without an interval.",
            layers("cka_previous", 0.9, 0.7, 0.8),
            layers("cka_previous", 0.7, 0.9, 0.8),
        ),
        (
            "The arrangement changes most",
            layers("cka_previous", 0.9, 0.7, 0.8),
            layers("cka_previous", 0.7, 0.7, 0.70001),
        ),
        (
            "From layer to layer the arrangement changes alike, CKA 0.7.",
            layers("cka_previous", 0.7, 0.7, 0.70001),
            layers("cka_previous", 0.7, 0.7, 0.8),
        ),
        (
            "The last place, layer 2, has a CKA of 0.5 with the first layer.",
            layers("cka_first", 1.0, 0.6, 0.5),
            [*layers("cka_first", 1.0, 0.6, 0.5), row("cka_first", 0.4, kind="output")],
        ),
    ),
    "sample": (
        (
            "Among nearest neighbours the dimension (TwoNN) is 8; of an isotropic cloud of as many vectors "
            "90.",
            [row("intrinsic_dimension", 8, null=90)],
            [row("intrinsic_dimension", 8, null=NAN)],
        ),
        (
            "an isotropic cloud of as many",
            [row("intrinsic_dimension", 8, null=90)],
            [row("intrinsic_dimension", 8, null=NAN)],
        ),
        (
            "to 9 in layer 1; of an isotropic cloud of as many vectors 20 and 90.",
            [row("intrinsic_dimension", 8, null=20), row("intrinsic_dimension", 9, layer=1, null=90)],
            [row("intrinsic_dimension", 8, null=90), row("intrinsic_dimension", 9, layer=1, null=90)],
        ),
        (
            "the dimension (TwoNN) is 8; of",
            layers("intrinsic_dimension", 8, 8.0001, half=None),
            layers("intrinsic_dimension", 8, 9, half=None),
        ),
        (
            "is 8 in layer 0 to 9 in layer 1; of",
            layers("intrinsic_dimension", 8, 9, half=None),
            layers("intrinsic_dimension", 8, 8.0001, half=None),
        ),
        (
            "The uniformity of the directions is −3; it is −4 when they fill the sphere evenly and 0 when",
            [row("uniformity", -3, null=-4)],
            [row("uniformity", -3, null=NAN)],
        ),
        (
            "is −3; it is 0 when all are one",
            [row("uniformity", -3, null=NAN)],
            [row("uniformity", -3, null=-4)],
        ),
    ),
    "partition": (
        (
            "In units of the mean norm the partition isotropy is 0.3, where random directions give 0.9.",
            [row("partition_isotropy_unit", 0.3, null=0.9)],
            [row("partition_isotropy_unit", 0.3, null=NAN)],
        ),
        (
            ", where random directions",
            [row("partition_isotropy_unit", 0.3, null=0.9)],
            [row("partition_isotropy_unit", 0.3, null=NAN)],
        ),
        (
            "With the norms as they are the partition",
            [row("partition_isotropy", 0.3)],
            [row("partition_isotropy_unit", 0.3)],
        ),
    ),
    "comparison": (
        (
            "Mean cosine and drift, Spearman’s r over layers: −0.50 in m0 (8 layers, nominal p = 0.02).",
            ranked(-0.5),
            ranked(-0.5, note="nominal p = 0"),
        ),
        ("nominal p", ranked(-0.5), [row("pearson_drift", 0.5, kind="comparison")]),
        ("(8 layers)", ranked(-0.5, note="nominal p = 0"), ranked(-0.5)),
        ("(8 layers)", ranked(-0.5, note="a remark"), ranked(-0.5)),
        ("Mean cosine and relative drift, ", ranked(0.5, drift="relative_drift"), ranked(0.5)),
        (
            "0.90 over all models",
            [*ranked(0.5), row("spearman_drift", 0.9, model="all models", kind="comparison")],
            ranked(0.5, 0.9),
        ),
        (
            "(m0) to",
            ranked(*(at / 10 for at in range(5))),
            ranked(*(at / 10 for at in range(4))),
        ),
        (
            "Layers of one model are not independent, so p is nominal. When norms are equal the mean cosine "
            "is about the square of the relative drift: those two are no independent evidence of each other.",
            ranked(0.5),
            [row("pearson_drift", 0.5, kind="comparison")],
        ),
    ),
}
CASES = cases(FOUND)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
