"""What is said of weights: counts of heads, words that vocabularies earn; nothing beyond the intervals."""

from __future__ import annotations

import math

import pytest
from scipy.stats import combine_pvalues

from isoscope.results.row import frame
from isoscope.show.say.weights import ALONG, LEAST, fisher
from isoscope.show.say.words import headline, sentences
from tests.show import made_weights as made
from tests.show.made import row


def test_the_headline_counts_heads_and_grades_vocabularies() -> None:
    text = headline(frame(made.weighed()))
    traces = [r for r in made.heads() if r.measure == "trace" and r.head is not None]
    decided = [r for r in traces if r.note != "regime: undecided"]
    late = sum(r.note == "regime: late" for r in traces)
    near = [100 / r.value for r in traces if r.note == "regime: middle"]
    assert text.startswith(
        f"For inputs that walk at random, the weights decide where {len(decided)} of 72 heads would look: "
        f"in the late half ({late}), within {min(near):.0f}–{max(near):.0f} % of the length past the middle "
        f"({len(near)})"
    )
    assert (
        "The input vocabulary is anisotropic (mean cosine 0.33), the output vocabulary strongly anisotropic "
        "(mean cosine 0.64), where random directions have 0." in text
    )
    assert text.endswith("The final norm’s β points against the mean of the vocabulary (cosine −0.43).")
    assert "was not measured" not in text


def test_cross_attention_is_not_of_the_theory_and_not_counted() -> None:
    rows = [*made.heads(2, 3), *made.heads(1, 4, kind="cross_query_key")]
    assert headline(frame(rows)) == headline(frame(made.heads(2, 3)))
    text = sentences(frame(rows), "query_key")
    assert "of 6 heads are undecided" in text
    assert "4 heads of cross-attention are not counted" in text
    assert headline(frame(made.heads(1, 4, kind="cross_query_key"))) == (
        "Little could be read of these weights: numbers on queries and keys, but none on where heads would "
        "look, or on how a vocabulary lies."
    )


def test_weights_of_which_little_was_read_have_a_headline_of_their_own() -> None:
    few = [row("norm_weight_size", 0.9, kind="norm"), row("singular_entropy", 0.1, kind="input_vocabulary")]
    assert "numbers on vocabularies and the final norm, but none" in headline(frame(few))
    none = [row("trace", math.nan, kind="query_key", layer=1, head=0, note="the weights hold NaN")]
    assert headline(frame(none)) == ("Nothing that was read of these weights is a number; the notes say why.")
    assert headline(frame([row("drift", 0.2, kind="layer", layer=1)])).startswith("The mean cosine between")


def test_only_a_place_is_decided() -> None:
    """Heads that let all, half or nothing pass wherever it is have decided on no place."""
    rows = [r for head in range(2) for r in made.head_rows(1, head, 0.0001, 0.05)]
    rows += made.head_rows(1, 2, 0.0, 60.0)
    text = "1 would let no signal pass."
    half = "2 would let half of the signal pass, wherever it is and "
    assert headline(frame(rows)) == (
        "For inputs that walk at random, the weights of 3 heads decide nothing about where they look; "
        + half
        + text
    )
    both = [*rows, *made.head_rows(1, 3, -1.0, 0.1), *made.head_rows(1, 4, -2.1, 0.1)]
    assert headline(frame(both)) == (
        "For inputs that walk at random, the weights decide where 2 of 5 heads would look: in the early half "
        "(1) and within 48 % of the length before the middle (1); " + half + text
    )


@pytest.mark.parametrize(("slopes", "told"), [((0.1, 0.4), True), ((0.1, 0.6), False), ((), False)])
def test_the_headline_begins_with_a_premise_that_does_not_hold(slopes: tuple[float, ...], told: bool) -> None:
    walk = [row("walk_slope", slope, kind="query_key", layer=at) for at, slope in enumerate(slopes, 1)]
    text = headline(frame([*made.heads(2, 3), *walk]))
    assert text.startswith(
        "On this data the inputs of attention do not walk at random (walk slope 0.1–0.4 in all layers, where "
        "a walk has 1), so the theory of where heads look does not apply. For inputs that do walk, the "
        if told
        else "For inputs that walk at random, the weights"
    )


def test_nothing_is_claimed_of_heads_that_are_undecided() -> None:
    rows = [r for head in range(3) for r in made.head_rows(1, head, 0.01, 1.0)]
    assert headline(frame(rows)) == (
        "For inputs that walk at random, the weights of 3 heads decide nothing about where they look."
    )


@pytest.mark.parametrize(
    ("value", "null", "word"),
    [
        (LEAST - 0.001, 0.0, "not anisotropic"),
        (LEAST, 0.0, "weakly anisotropic"),
        (0.31, 0.305, "not anisotropic"),
        (0.1, 0.0, "anisotropic"),
        (0.51, 0.0, "strongly anisotropic"),
        (-0.2, 0.0, "not anisotropic"),
    ],
)
def test_a_vocabulary_earns_its_word_above_its_null(value: float, null: float, word: str) -> None:
    rows = [row("mean_cosine", value, kind="input_vocabulary", null=null)]
    assert headline(frame(rows)).startswith(f"The input vocabulary is {word} (mean cosine")


def test_what_the_bias_does_is_told_where_intervals_part() -> None:
    for half, told in ((0.01, True), (0.2, False)):
        rows = [row("relative_drift", 0.6, half=half, kind="norm_scaled")]
        rows += [row("relative_drift", 0.4, half=half, kind="norm_output"), *made.heads(1, 1)]
        assert (
            "The final norm’s β takes the relative drift from 0.60 to 0.40." in headline(frame(rows))
        ) == told
    for cosine, told in ((ALONG, True), (ALONG - 0.01, False)):
        rows = [row("bias_vocabulary_cosine", cosine, kind="norm"), *made.heads(1, 1)]
        assert ("β points along the mean" in headline(frame(rows))) == told


def agreements(own: float, others: float, mirrored: float, *chances: float) -> str:
    rows = []
    for layer, p in enumerate(chances, 1):
        place = {"kind": "query_key", "layer": layer, "null": (others + mirrored) / 2}
        note = f"other heads {others:.3f}, mirrored {mirrored:.3f}; p = {p:.2g}"
        rows += [
            row("propagation_agreement", own + at, head=head, **place) for head, at in enumerate((0.1, -0.1))
        ]
        rows.append(row("propagation_agreement", own, **place | {"note": note}))
    return sentences(frame(rows), "query_key")


def test_agreement_is_told_with_that_of_other_heads() -> None:
    text = agreements(0.4, 0.2, -0.1, 0.01, 0.04)
    assert text == (
        "Measured attention ranks the places as a head’s own weights predict with r = 0.40 (Spearman, mean "
        "over 4 heads), as those of the layer’s other heads predict with 0.20, and as the mirror images of "
        "those with −0.10: own predictions agree better than those of other heads (p = 0.0035)."
    )
    assert "own predictions do not agree better than those of other heads (p = 0.15)." in agreements(
        0.4, 0.2, 0.5, 0.2, 0.17
    )
    assert "(p = 0.0035), but no better than mirror images." in agreements(-0.2, -0.3, 0.1, 0.01, 0.04)
    assert "(p < 0.001)" in agreements(0.4, 0.2, 0.0, 1e-4, 1e-4)
    assert "by chance" not in text
    alone = row("propagation_agreement", 0.3, kind="query_key", layer=1, head=0)
    assert "r = 0.30 (Spearman, one head)." in sentences(frame([alone]), "query_key")


@pytest.mark.parametrize("chances", [[1.0], [0.3], [0.01, 0.04], [1.0, 1.0], [1e-4] * 40, [0.5] * 300])
def test_chances_are_joined_by_fishers_method(chances: list[float]) -> None:
    expected = combine_pvalues(chances, "fisher").pvalue
    assert fisher(chances) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_walk_is_told_where_it_is_one() -> None:
    walk = [row("walk_slope", slope, kind="query_key", layer=at) for at, slope in enumerate((0.1, 0.9), 1)]
    assert "not in layer 1" in sentences(frame(walk), "query_key")
    assert "premise holds nowhere" in sentences(frame(walk[:1]), "query_key")
    assert "premise" not in sentences(frame(walk[1:]), "query_key")
