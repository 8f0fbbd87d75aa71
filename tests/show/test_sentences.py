"""Every sentence on clouds: where it must be said and, at the edge of its condition, where it must not."""

from __future__ import annotations

import math

import pytest

from tests.show.made import row
from tests.show.said import BETWEEN, HEADLINE, Case, Table, along, cases, layers, of_models

NAN = math.nan
FIRM = row(BETWEEN, 0.6, half=0.01)
BROKEN = [*along(0.3, 0.4), row("not_finite", 3.0, step=100, n=9)]
LIVE = row(BETWEEN, 0.9, half=0.01, revision="live")
CLOUD = row(BETWEEN, 0.6, half=0.01, kind="cloud", model="vectors")
FIVE = (0.4, 0.2, 0.3, 0.6, 0.5)
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
            "Layer 0 of m is strongly anisotropic: mean cosine between sequences 0.60; an isotropic",
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
            "No anisotropy is shown in layer 0 of m: mean cosine between sequences 0.20; an isotropic cloud "
            "has 0.05 (indistinguishable from chance).",
            [row(BETWEEN, 0.2, low=0.05, high=0.3, null=0.05)],
            [row(BETWEEN, 0.2, low=0.051, high=0.3, null=0.05)],
        ),
        ("layers 0–1 of m are anisotropic".capitalize(), layers(BETWEEN, 0.3, 0.3), layers(BETWEEN, 0.3)),
        ("(no interval, so nothing is claimed)", [row(BETWEEN, 0.9)], [row(BETWEEN, 0.9, half=0.01)]),
        (". In layer 1 it is 0.30.", layers(BETWEEN, 0.6, 0.3), layers(BETWEEN, 0.6, 0.0)),
        (
            "In layer 1 it cannot be distinguished from chance.",
            layers(BETWEEN, 0.6, 0.0),
            layers(BETWEEN, 0.6, 0.3),
        ),
        (
            "In layer 1 it cannot be distinguished",
            [FIRM, row(BETWEEN, 0.9, layer=1)],
            [FIRM, row(BETWEEN, 0.9, half=0.01, layer=1)],
        ),
        ("vectors is strongly", [CLOUD], [FIRM]),
        ("Layer 0 of m at step 1,200 is", [row(BETWEEN, 0.6, half=0.01, step=1200)], [FIRM]),
        ("was not measured, so nothing is claimed", [row("mean_cosine", 0.9, half=0.01)], [FIRM]),
        ("of m is undefined everywhere; the notes", layers(BETWEEN, NAN), layers(BETWEEN, NAN, 0.3)),
        # several steps: told apart where the interval of the change does not contain 0
        (
            "From step 0 to step 100 of m the mean cosine between sequences rose from 0.10 to 0.12 "
            "(intervals not paired).",
            along(0.1, 0.121),
            along(0.1, 0.114),
        ),
        ("fell from 0.12 to 0.10", along(0.121, 0.1), along(0.114, 0.1)),
        ("rose everywhere, most in layer 1 (from 0.30 to 0.80)", ROSE, ROSE[::2]),
        ("shows no change distinguishable from chance: 0.3, then 0.31", along(0.3, 0.31), along(0.3, 0.4)),
        ("(without intervals)", along(0.3, 0.9, half=None), along(0.3, 0.31)),
        ("(without intervals)", [along(0.3)[0], row(BETWEEN, 0.9, step=9)], along(0.3, 0.31)),
        ("0.8 in layer 1 at", [*along(0.3, 0.3, 0.3), *along(0.3, 0.8, 0.3, layer=1)], along(0.3, 0.8, 0.3)),
        ("a peak of 0.8 at", clouds(0.3, 0.8, 0.3), along(0.3, 0.3, 0.3)),
        (  # of several the farthest from both ends
            "a peak of 0.6 in layer 1 at",
            [*along(0.1, 0.6, 0.5), *along(0.3, 0.6, 0.3, layer=1)],
            [*along(0.3, 0.6, 0.3), *along(0.1, 0.6, 0.5, layer=1)],
        ),
        (
            "a low of 0.4 in layer 1 at",
            [*along(0.9, 0.4, 0.5), *along(0.7, 0.4, 0.7, layer=1)],
            [*along(0.7, 0.4, 0.7), *along(0.9, 0.4, 0.5, layer=1)],
        ),
        ("rose", along(0.0, 0.5, half=0.2), along(0.0, 0.5, half=0.36)),
        ("fell", along(0.5, 0.0, half=0.2), along(0.5, 0.0, half=0.36)),
        ("a peak", along(0.25, 0.75, 0.25, half=0.2), along(0.25, 0.75, 0.25, half=0.36)),
        ("a low", along(0.75, 0.25, 0.75, half=0.2), along(0.75, 0.25, 0.75, half=0.36)),
        ("Layer 1 of m at step 9 is", [along(0.3)[0], row(BETWEEN, 0.3, half=0.01, step=9, layer=1)], ROSE),
        # several models
        (
            "highest mean cosine between sequences is 0.30 in layer 0 of a and 0.60 in layer 0 of b;",
            of_models(0.3, 0.6),
            of_models(0.3),
        ),
        ("(indistinguishable from chance)", of_models(0.6, 0.0), of_models(0.6, 0.3)),
        ("(without an interval)", of_models(0.6, 0.3, half=None), of_models(0.6, 0.3)),
        ("At the last step, the highest mean", of_models(0.3, 0.6, step=9), of_models(0.3, 0.6)),
        (
            "sequences is 0.30 in layer 0 of a",
            [*along(0.6, 0.3, model="a"), *along(0.6, 0.3, model="b")],
            [*along(0.3, 0.6, model="a"), *along(0.3, 0.6, model="b")],
        ),
        (
            "is 0.20 in layer 0 of b to 0.60 in layer 0 of d (5 models)",
            of_models(*FIVE),
            of_models(*FIVE[:4]),
        ),
        ("0.40 in a and", of_models(0.4, 0.6, kind="cloud"), of_models(0.4, 0.6)),
        # a run that broke, and batches that trained
        ("NaN or Inf was first seen at step 100, in layer 0 (3 of 9 vectors).", BROKEN, along(0.3, 0.4)),
        ("NaN or Inf was first seen", BROKEN, [*BROKEN, *along(0.3, 0.4, model="other")]),
        ("NaN or Inf was first seen", BROKEN, [BROKEN[1], BROKEN[2]]),
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
            "Only the mean cosine over all pairs was measured. Pairs within one sequence inflate it, so "
            "nothing is claimed.",
            [row("mean_cosine", 0.9)],
            [row("mean_cosine", 0.9), FIRM],
        ),
        ("Only the mean", [row("mean_cosine", 0.9)], [row("rogue_contribution", 0.2)]),
        # the shape of a range, with the null where it is known
        (
            "The mean cosine between sequences is 0.2 (95 % interval 0.19–0.21) in layer 0 to 0.4 "
            "(0.39–0.41) in layer 1; an isotropic cloud has 0.",
            layers(BETWEEN, 0.2, 0.4),
            layers(BETWEEN, 0.2),
        ),
        ("The mean cosine", [FIRM], layers(BETWEEN, NAN)),
        ("between sequences is 0.6 (95 % interval", [FIRM], layers(BETWEEN, 0.2, 0.4)),
        ("an isotropic cloud has 0.1.", layers(BETWEEN, 0.2, null=0.1), layers(BETWEEN, 0.2, null=NAN)),
        ("an isotropic cloud", layers(BETWEEN, 0.2, null=0.1), layers(BETWEEN, 0.2, null=NAN)),
        # the frame of every family: several steps, several models
        ("At step", along(0.1, 0.3), along(0.1)),
        ("At step 100: the mean cosine between sequences is 0.3 (", along(0.1, 0.3), along(0.3, 0.1)),
        ("b: the mean cosine between sequences is 0.3", of_models(0.1, 0.3), of_models(0.1)),
        ("b, step 100: the", [*along(0.1, 0.3), *along(0.1, 0.3, model="b")], along(0.1, 0.3)),
        ("The figure shows 2 more.", MANY, MANY[:-1]),
        ("The figure shows one more.", MANY[:-1], MANY[:-2]),
    ),
    "drift": (
        # the shape of one end, tested against its null
        (
            "The length of the mean vector over the mean length (relative drift) is 0.5 (95 % interval "
            "0.021–0.9); a cloud centred on the origin has 0.02 at this n.",
            [row("relative_drift", 0.5, low=0.021, high=0.9, **NULL)],
            [row("relative_drift", 0.5, null=NAN)],
        ),
        (
            "It is indistinguishable from chance.",
            [row("relative_drift", 0.5, low=0.02, high=0.9, **NULL)],
            [row("relative_drift", 0.5, low=0.021, high=0.9, **NULL)],
        ),
        (
            "Without both an interval and a null it cannot be compared with chance.",
            [row("relative_drift", 0.5, **NULL)],
            layers("relative_drift", 0.5, **NULL),
        ),
        (
            "Without both",
            layers("relative_drift", 0.3, null=NAN),
            layers("relative_drift", 0.3, **NULL),
        ),
        (
            "is up to 0.5 (95 % interval 0.49–0.51) in layer 1; a cloud centred",
            layers("relative_drift", 0.3, 0.5, **NULL),
            layers("relative_drift", 0.5, **NULL),
        ),
        (
            "It is indistinguishable from chance in layer 1.",
            layers("relative_drift", 0.3, 0.02, **NULL),
            layers("relative_drift", 0.3, 0.5, **NULL),
        ),
        (
            "it cannot be compared with chance in layer 1.",
            [row("relative_drift", 0.3, half=0.01, **NULL), row("relative_drift", 0.9, layer=1, **NULL)],
            layers("relative_drift", 0.3, 0.9, **NULL),
        ),
    ),
    "spectrum": (
        (
            "; an isotropic cloud has 8 and 48.",  # where layers have widths of their own
            [row("participation_ratio", 7, null=8), row("participation_ratio", 12, layer=1, null=48)],
            [row("participation_ratio", 7, null=48), row("participation_ratio", 12, layer=1, null=48)],
        ),
        (
            "The number of directions that carry the variance (split-half participation ratio) is 20 (95 % "
            "interval 19–21) in layer 1 to 44 (43–45) in layer 0; an isotropic cloud has 768.",
            layers("participation_ratio_split", 44, 20, half=1, null=768),
            layers("participation_ratio_split", 44, half=1, null=768),
        ),
        (
            "(participation ratio) is 44",
            [row("participation_ratio", 44)],
            [row("participation_ratio", 44), row("participation_ratio_split", 44)],
        ),
        (
            "The share of variance along one direction is up to 0.3 (95 % interval 0.29–0.31) in layer 1",
            layers("top_share", 0.1, 0.3),
            layers("top_share", 0.3),
        ),
    ),
    "training": (
        ("The loss of d", [r for m in "bcd" for r in losing(m)], [r for m in "abcd" for r in losing(m)]),
        ("The loss is 3 at step 0.", along(3.0, **LOSS), along(3.0, 2.0, **LOSS)),
        ("The loss is 3 at step 0, then 2 at step 100.", along(3.0, 2.0, **LOSS), along(3.0, **LOSS)),
        ("The loss", along(3.0, **LOSS), [row("accuracy", 0.3, step=0, kind="training")]),
        ("The loss", along(3.0, **LOSS), [row("loss", 0.3, kind="training")]),
        ("; the lowest is 1 at step 100", along(3.0, 1.0, 2.0, **LOSS), along(3.0, 2.0, 1.0, **LOSS)),
        (
            "The loss of b is 3",
            [*along(3.0, 1.0, **LOSS), *along(3.0, 1.0, model="b", **LOSS)],
            along(3.0, 1.0, model="b", **LOSS),
        ),
    ),
    "health": (
        (
            "Left out in layer 0 of m: vectors that are not finite: NaN or infinite (2).",
            [row("not_finite", 2.0)],
            [row("not_finite", 0.0)],
        ),
        ("zero vectors, which have no direction (1)", [row("zero_vectors", 1.0)], [row("zero_vectors", 0.0)]),
        (
            "Left out in the attention of layer 1 of m: queries with scores that are not finite (2).",
            [row("not_finite_rows", 2.0, kind="attention", layer=1)],
            [row("not_finite_rows", 2.0, kind="attention", layer=1, head=0)],
        ),
        ("queries without a visible key (2)", [row("blind_rows", 2.0)], [row("blind_rows", 1.0)]),
        (
            "Left out in layers 0–1 of m: zero vectors, which have no direction (up to 3 in layer 1).",
            layers("zero_vectors", 1, 3, half=None),
            layers("zero_vectors", 0, 3, half=None),
        ),
    ),
    "a family of its own": (
        (
            "Bend is 1 in layer 0 to 2 in layer 1.",
            layers("bend", 1.0, 2.0, half=None),
            layers("bend", 1.0, half=None),
        ),
        ("Bend is 1. Curl is 2.", [row("bend", 1.0), row("curl", 2.0)], [row("bend", 1.0)]),
        ("Bend is 1.", layers("bend", 1.0, half=None), layers("bend", 1.0, 2.0, half=None)),
    ),
}
CASES = cases(CLAIMS)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_sentence_is_said_where_it_holds_and_only_there(case: Case) -> None:
    assert case.words in case.there()
    assert case.words not in case.elsewhere()
