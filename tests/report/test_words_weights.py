"""What is said of weights: counts of heads, words that vocabularies earn; nothing beyond the intervals."""

from __future__ import annotations

import pytest

from isoscope.report.sentences_weights import ALONG, LEAST
from isoscope.report.words import headline, sentences
from isoscope.results.schema import frame
from tests.report import made_weights as made
from tests.report.made import row


def test_the_headline_counts_heads_and_grades_vocabularies() -> None:
    text = headline(frame(made.weighed()))
    traces = [r for r in made.heads() if r.measure == "trace" and r.head is not None]
    decided = [r for r in traces if r.note != "regime: undecided"]
    late = sum(r.note == "regime: late" for r in traces)
    assert text.startswith(
        f"For inputs that walk at random, the weights decide where {len(decided)} of 72 heads would look: "
        f"in the late half ({late})"
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
    assert headline(frame(made.heads(1, 4, kind="cross_query_key"))).startswith("The mean cosine between")


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


def test_agreement_is_told_with_what_random_weights_do() -> None:
    rows = [
        row("propagation_agreement", value, kind="query_key", layer=1, head=head, null=0.2,
            note=f"closed form; p = {p} against random W")
        for head, (value, p) in enumerate([(0.9, 0.01), (0.1, 0.5), (0.2, 0.6), (0.4, 0.05)])
    ]  # fmt: skip
    text = sentences(frame(rows), "query_key")
    assert "with r = 0.40 (Spearman, mean over 4 heads), as predicted of random weights with 0.20" in text
    assert (
        "in 2 of 4 heads at most one random weight in twenty does as well, where 0.2 would by chance" in text
    )
    walk = [row("walk_slope", slope, kind="query_key", layer=at) for at, slope in enumerate((0.1, 0.9), 1)]
    assert "not in layer 1" in sentences(frame(walk), "query_key")
    assert "premise holds nowhere" in sentences(frame(walk[:1]), "query_key")
    assert "premise" not in sentences(frame(walk[1:]), "query_key")
