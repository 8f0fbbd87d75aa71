"""Every sentence on clouds: where it must be said and, at the edge of its condition, where it must not."""

from __future__ import annotations

import math

import pytest

from tests.show.made import row
from tests.show.said import BETWEEN, HEADLINE, Case, Table, along, cases, layers, of_models

NAN = math.nan
FIRM = row(BETWEEN, 0.6, half=0.01)
BROKEN = [*along(0.3, 0.4), row("not_finite", 3.0, step=100, n=9)]
BROKEN_LATE = [*along(0.3, 0.4, 0.5), *along(0.3, 0.4, layer=1), *along(0.3, 0.4, layer=2)]
LIVE = row(BETWEEN, 0.9, half=0.01, revision="live")
CLOUD = row(BETWEEN, 0.6, half=0.01, kind="cloud", model="vectors")
FIVE = (0.4, 0.2, 0.3, 0.6, 0.5)
DIM = {"note": "dimension 447"}
ROSE = [*layers(BETWEEN, 0.1, 0.3, step=0), *layers(BETWEEN, 0.4, 0.8, step=9)]
LOSS = {"measure": "loss", "half": None, "kind": "training"}
NULL = {"null": 0.02}
MANY = of_models(*[0.3] * 5)


def clouds(*values: float, half: float = 0.01) -> list:
    return along(*values, half=half, kind="cloud")


def losing(model: str) -> list:
    return along(3.0, 2.0, model=model, **LOSS)


CLAIMS: Table = {
    HEADLINE: (
        # one step: a word of size hangs on the near end of the interval
        (
            "Layer 0 of m is strongly anisotropic: mean cosine between sequences 0.60, where an isotropic",
            [row(BETWEEN, 0.6, low=0.501, high=0.7)],
            [row(BETWEEN, 0.6, low=0.5, high=0.7)],
        ),
        (
            "Layer 0 of m is anisotropic: ",
            [row(BETWEEN, 0.2, low=0.1, high=0.3)],
            [row(BETWEEN, 0.2, low=0.099, high=0.3)],
        ),
        (
            "Layer 0 of m is weakly anisotropic: ",
            [row(BETWEEN, 0.2, low=0.001, high=0.4)],
            [row(BETWEEN, 0.2, low=0.0, high=0.4)],
        ),
        (
            "No anisotropy can be told from chance in layer 0 of m: the mean cosine between sequences is 0.20"
            " and the 95 % interval does not lie above 0.05",
            [row(BETWEEN, 0.2, low=0.05, high=0.3, null=0.05)],
            [row(BETWEEN, 0.2, low=0.051, high=0.3, null=0.05)],
        ),
        ("the 95 % intervals do not", layers(BETWEEN, 0.0, 0.0), layers(BETWEEN, 0.0)),
        ("layers 0–1 of m are anisotropic".capitalize(), layers(BETWEEN, 0.3, 0.3), layers(BETWEEN, 0.3)),
        ("without an interval it cannot be told", [row(BETWEEN, 0.9)], [row(BETWEEN, 0.9, half=0.01)]),
        ("; in layer 1 it is", layers(BETWEEN, 0.6, 0.3), layers(BETWEEN, 0.6, 0.0)),
        ("in layer 1 it cannot be told from", layers(BETWEEN, 0.6, 0.0), layers(BETWEEN, 0.6, 0.3)),
        (
            "in layer 1 it cannot be told",
            [FIRM, row(BETWEEN, 0.9, layer=1)],
            [FIRM, row(BETWEEN, 0.9, half=0.01, layer=1)],
        ),
        ("vectors is strongly", [CLOUD], [FIRM]),
        ("Layer 0 of m at step 1,200 is", [row(BETWEEN, 0.6, half=0.01, step=1200)], [FIRM]),
        ("was not measured, so nothing is claimed", [row("mean_cosine", 0.9, half=0.01)], [FIRM]),
        ("of m is undefined everywhere; the notes", layers(BETWEEN, NAN), layers(BETWEEN, NAN, 0.3)),
        # several steps: told apart where intervals do not overlap
        (
            "Between step 0 and step 100 of m the mean cosine between sequences rose in layer 0 from 0.10 to",
            along(0.1, 0.121),
            along(0.1, 0.119),
        ),
        ("fell in layer 0 from 0.12 to 0.10", along(0.121, 0.1), along(0.119, 0.1)),
        ("rose from 0.10 to 0.30, where", clouds(0.1, 0.3), along(0.1, 0.3)),
        ("rose in layers 0–1, most in layer 1 (from 0.30 to 0.80)", ROSE, ROSE[::2]),
        (
            "fell in layers 0–1, most in layer 1 (from 0.90 to 0.20)",
            [*along(0.5, 0.4), *along(0.9, 0.2, layer=1)],
            [*along(0.9, 0.2), *along(0.5, 0.4, layer=1)],
        ),
        ("; in layer 1 no change can be", [*along(0.1, 0.3), *along(0.1, 0.1, layer=1)], ROSE),
        ("can be told from chance at this n: it is 0.30, then 0.31", along(0.3, 0.31), along(0.3, 0.4)),
        ("can be told from chance at this n", along(0.3, 0.31), [along(0.3)[0], row(BETWEEN, 0.9, step=9)]),
        ("from chance without intervals", along(0.3, 0.9, half=None), along(0.3, 0.31)),
        ("on the way it has a peak of 0.42 at step 100", along(0.3, 0.421, 0.4), along(0.3, 0.419, 0.4)),
        ("a peak of 0.42", along(0.4, 0.421, 0.3), along(0.4, 0.419, 0.3)),
        ("a peak", along(0.3, 0.6, 0.4), [*along(0.3, 0.6), row(BETWEEN, 0.4, step=200)]),
        ("on the way it has a low of 0.28 at step 100", along(0.3, 0.279, 0.4), along(0.3, 0.281, 0.4)),
        ("a low of", along(0.4, 0.279, 0.3), along(0.4, 0.281, 0.3)),
        ("a low of", along(0.4, 0.1, 0.3), [*along(0.4, 0.1), row(BETWEEN, 0.3, step=200)]),
        ("0.80 in layer 1 at", [*along(0.3, 0.3, 0.3), *along(0.3, 0.8, 0.3, layer=1)], along(0.3, 0.8, 0.3)),
        ("a peak of 0.80 at", clouds(0.3, 0.8, 0.3), along(0.3, 0.3, 0.3)),
        (  # of several the farthest from both ends
            "a peak of 0.60 in layer 1 at",
            [*along(0.1, 0.6, 0.5), *along(0.3, 0.6, 0.3, layer=1)],
            [*along(0.3, 0.6, 0.3), *along(0.1, 0.6, 0.5, layer=1)],
        ),
        (
            "a low of 0.40 in layer 1 at",
            [*along(0.9, 0.4, 0.5), *along(0.7, 0.4, 0.7, layer=1)],
            [*along(0.7, 0.4, 0.7), *along(0.9, 0.4, 0.5, layer=1)],
        ),
        (
            "from chance at this n",
            [*along(0.3, 0.31), *along(0.3, 0.31, half=None, layer=1)],
            along(0.3, 0.31, half=None),
        ),
        ("rose", along(0.0, 0.5, half=0.2), along(0.0, 0.5, half=0.25)),  # where they touch they overlap
        ("fell", along(0.5, 0.0, half=0.2), along(0.5, 0.0, half=0.25)),
        ("a peak", along(0.25, 0.75, 0.25, half=0.2), along(0.25, 0.75, 0.25, half=0.25)),
        ("a low", along(0.75, 0.25, 0.75, half=0.2), along(0.75, 0.25, 0.75, half=0.25)),
        ("Layer 1 of m at step 9 is", [along(0.3)[0], row(BETWEEN, 0.3, half=0.01, step=9, layer=1)], ROSE),
        # several models
        ("reaches 0.30 in layer 0 of a and 0.60 in layer 0 of b, where", of_models(0.3, 0.6), of_models(0.3)),
        ("(not to be told from chance)", of_models(0.6, 0.0), of_models(0.6, 0.3)),
        ("(without an interval)", of_models(0.6, 0.3, half=None), of_models(0.6, 0.3)),
        (
            "The highest mean cosine between sequences of each of",
            of_models(*FIVE),
            of_models(*FIVE[:4]),
        ),
        ("At the last step, the mean", of_models(0.3, 0.6, step=9), of_models(0.3, 0.6)),
        (
            "reaches 0.30 in layer 0 of a",
            [*along(0.6, 0.3, model="a"), *along(0.6, 0.3, model="b")],
            [*along(0.3, 0.6, model="a"), *along(0.3, 0.6, model="b")],
        ),
        ("goes from 0.20 in layer 0 of b to 0.60 in layer 0 of d", of_models(*FIVE), of_models(*FIVE[:4])),
        ("0.40 in a and", of_models(0.4, 0.6, kind="cloud"), of_models(0.4, 0.6)),
        # a run that broke, and batches that trained
        ("NaN or Inf was first seen at step 100, in layer 0 (3 of 9 vectors).", BROKEN, along(0.3, 0.4)),
        ("NaN or Inf was first seen", BROKEN, [*BROKEN, *along(0.3, 0.4, model="other")]),
        ("NaN or Inf was first seen", BROKEN, [BROKEN[1], BROKEN[2]]),
        ("and step 100 of m", [*BROKEN_LATE, row("not_finite", 3.0, step=200)], BROKEN_LATE),
        ("strongly", [LIVE], [LIVE, row(BETWEEN, 0.3, half=0.01)]),
        ("Layer 0 of vectors is", [row(BETWEEN, 0.6, half=0.01, model="vectors")], [CLOUD]),
        ("an isotropic cloud has 0.", layers(BETWEEN, 0.3, null=NAN), layers(BETWEEN, 0.0, null=NAN)),
        (
            "rose",
            along(0.1, 0.3),
            [*along(0.1, 0.1), row(BETWEEN, 0.9, half=0.01, step=300, revision="live")],
        ),
    ),
    "directions": (
        (
            "only the mean cosine over all pairs, which pairs within one sequence inflate, so no claim hangs",
            [row("mean_cosine", 0.9)],
            [row("mean_cosine", 0.9), FIRM],
        ),
        (
            "The mean cosine between sequences lies between 0.2 (95 % interval 0.19–0.21) in layer 0 and 0.4 "
            "(0.39–0.41) in layer 1; an isotropic cloud has 0.",
            layers(BETWEEN, 0.2, 0.4),
            layers(BETWEEN, 0.2),
        ),
        ("The mean cosine", [FIRM], layers(BETWEEN, NAN)),
        ("between sequences is 0.6 (95 % interval", [FIRM], layers(BETWEEN, 0.2, 0.4)),
        ("an isotropic cloud has 0.1.", layers(BETWEEN, 0.2, null=0.1), layers(BETWEEN, 0.2, null=NAN)),
        (
            "Over all pairs layer 1 reads 0.5",
            [*layers(BETWEEN, 0.2, 0.4), *layers("mean_cosine", 0.3, 0.5)],
            [*layers(BETWEEN, 0.2, 0.4), row("mean_cosine", 0.3)],
        ),
        ("Over all pairs it reads 0.5.", [FIRM, row("mean_cosine", 0.5)], [FIRM]),
        (
            ", inflated by pairs within one sequence, which are alike",
            [row(BETWEEN, 0.6, low=0.5, high=0.7), row("mean_cosine", 0.701)],
            [row(BETWEEN, 0.6, low=0.5, high=0.7), row("mean_cosine", 0.7)],
        ),
        (
            "inflated by pairs",
            [FIRM, row("mean_cosine", 0.9)],
            [row(BETWEEN, 0.6), row("mean_cosine", 0.9)],
        ),
        (
            "; the single largest dimension (dimension 447) makes 0.2 of the 0.5.",
            [FIRM, row("mean_cosine", 0.5), row("rogue_contribution", 0.2, **DIM)],
            [FIRM, row("mean_cosine", 0.5), row("rogue_contribution", 0.2, layer=1, **DIM)],
        ),
        (
            "single largest dimension makes",
            [FIRM, row("mean_cosine", 0.5), row("rogue_contribution", 0.2)],
            [FIRM, row("mean_cosine", 0.0), row("rogue_contribution", 0.2)],
        ),
        ("There is only", [row("mean_cosine", 0.9)], [row("rogue_contribution", 0.2)]),
        (
            "an isotropic cloud has 0. Over",
            [*layers(BETWEEN, 0.2, null=NAN), row("mean_cosine", 0.5)],
            [*layers(BETWEEN, 0.2, null=0.1), row("mean_cosine", 0.5)],
        ),
        # the frame of every family: several steps, several models
        ("At step", along(0.1, 0.3), along(0.1)),
        ("At step 100: the mean cosine between sequences is 0.3 (", along(0.1, 0.3), along(0.3, 0.1)),
        (
            "Over all pairs",
            [*of_models(0.1), row("mean_cosine", 0.5, model="a")],
            [*of_models(0.1, 0.3), row("mean_cosine", 0.5, model="a")],
        ),
        ("b: the mean cosine between sequences is 0.3", of_models(0.1, 0.3), of_models(0.1)),
        ("b, step 100: the", [*along(0.1, 0.3), *along(0.1, 0.3, model="b")], along(0.1, 0.3)),
        ("The figure shows 2 more.", MANY, MANY[:-1]),
        ("The figure shows one more.", MANY[:-1], MANY[:-2]),
    ),
    "drift": (
        (
            "of the mean length; a cloud",
            [row("relative_drift", 0.5, low=0.021, high=0.9, **NULL)],
            [row("relative_drift", 0.5, low=0.02, high=0.9, **NULL)],
        ),
        (
            "No drift can be told",
            [row("relative_drift", 0.5, low=0.02, high=0.9, **NULL)],
            [row("relative_drift", 0.5, low=0.021, high=0.9, **NULL)],
        ),
        (
            "; without an interval it cannot be told",
            [row("relative_drift", 0.3, half=0.01, null=NAN), row("relative_drift", 0.3, layer=1, null=NAN)],
            layers("relative_drift", 0.3, 0.3, null=NAN),
        ),
        (
            "The length of the mean vector is 0.5 (95 % interval 0.021–0.9) of the mean length; a cloud "
            "centred on the origin shows 0.02 at this n.",
            [row("relative_drift", 0.5, low=0.021, high=0.9, **NULL)],
            [row("relative_drift", 0.5, low=0.02, high=0.9, **NULL)],
        ),
        (
            "is up to 0.5 (95 % interval 0.49–0.51) of the mean length, in layer 1; a cloud centred",
            layers("relative_drift", 0.3, 0.5, **NULL),
            layers("relative_drift", 0.5, **NULL),
        ),
        (
            "; in layer 1 no drift can be told",
            layers("relative_drift", 0.3, 0.02, **NULL),
            layers("relative_drift", 0.3, 0.5, **NULL),
        ),
        (
            "; in layer 1 no drift can be told",
            [row("relative_drift", 0.3, half=0.01, **NULL), row("relative_drift", 0.9, layer=1, **NULL)],
            layers("relative_drift", 0.3, 0.9, **NULL),
        ),
        (
            "No drift can be told from chance at this n: the relative drift is 0.025 (95 % interval 0.015–"
            "0.035), and a cloud centred on the origin shows 0.02.",
            layers("relative_drift", 0.025, **NULL),
            layers("relative_drift", 0.035, **NULL),
        ),
        (
            "the relative drift is at most 0.025",
            layers("relative_drift", 0.021, 0.025, **NULL),
            layers("relative_drift", 0.025, **NULL),
        ),
        (
            "The relative drift is 0.5; without an interval it cannot be told from chance.",
            [row("relative_drift", 0.5)],
            layers("relative_drift", 0.5),
        ),
        (
            "is 0.2 (layer 0) to 0.5 (layer 1); without an interval",
            layers("relative_drift", 0.2, 0.5, half=None),
            layers("relative_drift", 0.2, 0.5),
        ),
        (
            "is 0.5; without a null it cannot be told from chance.",
            layers("relative_drift", 0.5, null=NAN),
            [row("relative_drift", 0.5, null=NAN)],
        ),
        (
            "The mean length of a vector is 40 (layer 0) to 80 (layer 1).",
            layers("mean_norm", 40, 80),
            layers("mean_norm", 40),
        ),
        ("The mean length of a vector is 40.", layers("mean_norm", 40), layers("mean_norm", 40, 80)),
    ),
    "spectrum": (
        (
            "where an isotropic cloud shows 8 and 48.",  # where layers have widths of their own
            [row("participation_ratio", 7, null=8), row("participation_ratio", 12, layer=1, null=48)],
            [row("participation_ratio", 7, null=48), row("participation_ratio", 12, layer=1, null=48)],
        ),
        (
            "The variance spreads over as few as 20 (95 % interval 19–21) directions in layer 1 and as many "
            "as 44 (43–45) in layer 0 (split-half participation ratio), where an isotropic cloud shows 768.",
            layers("participation_ratio_split", 44, 20, half=1, null=768),
            layers("participation_ratio_split", 44, half=1, null=768),
        ),
        (
            "The variance spreads over 44 directions (participation ratio).",
            [row("participation_ratio", 44, null=NAN)],
            [row("participation_ratio", 44, null=700)],
        ),
        (
            "The variance spreads over 44 directions (split-half participation ratio).",
            [row("participation_ratio_split", 44, null=NAN)],
            [row("participation_ratio", 44, null=NAN)],
        ),
        (
            "(participation ratio)",
            [row("participation_ratio", 44)],
            [row("participation_ratio", 44), row("participation_ratio_split", 44)],
        ),
        (
            "One single direction holds 30 % of the variance; in an isotropic cloud it holds 0.2 %.",
            [row("top_share", 0.3, null=0.002)],
            [row("top_share", 0.3, null=NAN)],
        ),
        ("in an isotropic cloud", [row("top_share", 0.3)], [row("top_share", 0.3, null=NAN)]),
        (
            "holds at most 30 % of the variance in layer 1",
            layers("top_share", 0.1, 0.3),
            layers("top_share", 0.3),
        ),
    ),
    "training": (
        ("The loss of d", [r for m in "bcd" for r in losing(m)], [r for m in "abcd" for r in losing(m)]),
        ("The loss is 3 at step 0.", along(3.0, **LOSS), along(3.0, 2.0, **LOSS)),
        ("The loss goes from 3 at step 0 to 2 at step 100.", along(3.0, 2.0, **LOSS), along(3.0, **LOSS)),
        ("The loss", along(3.0, **LOSS), [row("accuracy", 0.3, step=0, kind="training")]),
        ("The loss", along(3.0, **LOSS), [row("loss", 0.3, kind="training")]),
        ("; the lowest is 1 at step 100", along(3.0, 1.0, 2.0, **LOSS), along(3.0, 2.0, 1.0, **LOSS)),
        (
            "The loss of b goes",
            [*along(3.0, 1.0, **LOSS), *along(3.0, 1.0, model="b", **LOSS)],
            along(3.0, 1.0, model="b", **LOSS),
        ),
    ),
    "health": (
        ("2 vectors are not finite (NaN or", [row("not_finite", 2.0)], [row("not_finite", 0.0)]),
        ("1 vector is zero and so without", [row("zero_vectors", 1.0)], [row("zero_vectors", 0.0)]),
        (
            "In the attention of layer 1 of m, 2 queries have scores that are not finite, and left out.",
            [row("not_finite_rows", 2.0, kind="attention", layer=1)],
            [row("not_finite_rows", 2.0, kind="attention", layer=1, head=0)],
        ),
        ("1 query has scores", [row("not_finite_rows", 1.0)], [row("not_finite_rows", 2.0)]),
        ("2 queries are without a key", [row("blind_rows", 2.0)], [row("blind_rows", 1.0)]),
        ("1 query is without a key to see", [row("blind_rows", 1.0)], [row("blind_rows", 2.0)]),
        (
            "In layers 0–1 of m, up to 3 vectors are zero",
            layers("zero_vectors", 1, 3),
            layers("zero_vectors", 0, 3),
        ),
    ),
    "a family of its own": (
        ("Bend is 1 (layer 0) to 2 (layer 1).", layers("bend", 1.0, 2.0), layers("bend", 1.0)),
        ("Bend is 1. Curl is 2.", [row("bend", 1.0), row("curl", 2.0)], [row("bend", 1.0)]),
        ("Bend is 1.", layers("bend", 1.0), layers("bend", 1.0, 2.0)),
    ),
}
CASES = cases(CLAIMS)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
