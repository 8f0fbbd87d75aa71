"""What is said of weights: counts of heads, words that vocabularies earn; nothing beyond the intervals."""

from __future__ import annotations

import pytest
from scipy.stats import combine_pvalues

from isoscope.show.say.weights import LEAST, fisher
from isoscope.show.say.words import headline, sentences
from tests.show import made_weights as made
from tests.show.made import row
from tests.typed import frame


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
        "The input vocabulary is anisotropic (mean cosine 0.33) and the output vocabulary is strongly "
        "anisotropic (mean cosine 0.64); random directions have 0." in text
    )
    assert text.endswith("The final norm’s β points against the mean of the vocabulary (cosine −0.43).")
    assert "was not measured" not in text


def test_cross_attention_is_not_of_the_theory_and_not_counted() -> None:
    rows = [*made.heads(2, 3), *made.heads(1, 4, kind="cross_query_key")]
    assert headline(frame(rows)) == headline(frame(made.heads(2, 3)))
    text = sentences(frame(rows), "query_key")
    assert "of 6 heads is undecided" in text
    assert "4 heads of cross-attention are not counted" in text


def test_only_a_place_is_decided() -> None:
    """Heads that let all, half or nothing pass wherever it is have decided on no place."""
    rows = [r for head in range(2) for r in made.head_rows(1, head, 0.0001, 0.05)]
    rows += made.head_rows(1, 2, 0.0, 60.0)
    text = "1 would let no signal pass."
    half = "2 would let half of the signal pass, wherever it is and "
    assert headline(frame(rows)) == (
        "For inputs that walk at random, the weights decide where 0 of 3 heads would look; " + half + text
    )
    both = [*rows, *made.head_rows(1, 3, -1.0, 0.1), *made.head_rows(1, 4, -2.1, 0.1)]
    assert headline(frame(both)) == (
        "For inputs that walk at random, the weights decide where 2 of 5 heads would look: in the early half "
        "(1) and within 48 % of the length before the middle (1); " + half + text
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
    assert agreements(0.4, 0.2, -0.1, 0.01, 0.04) == (
        "Attention ranks positions as a head’s own weights predict with Spearman’s r = 0.40 (mean over 4 "
        "heads), better than other heads and mirror images predict (0.05; p = 0.0035)."
    )
    assert ", not better than other heads" in agreements(0.4, 0.2, 0.5, 0.2, 0.17)
    assert "p < 0.001)" in agreements(0.4, 0.2, 0.0, 1e-4, 1e-4)


@pytest.mark.parametrize("chances", [[1.0], [0.3], [0.01, 0.04], [1.0, 1.0], [1e-4] * 40, [0.5] * 300])
def test_chances_are_joined_by_fishers_method(chances: list[float]) -> None:
    expected = combine_pvalues(chances, "fisher").pvalue
    assert fisher(chances) == pytest.approx(expected, rel=1e-6, abs=1e-12)
