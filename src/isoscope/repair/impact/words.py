"""What a page tells of the scores of an impact: their explanations, by the name of the measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CHANGE = ".change"
_DRAWN = "2.5 and 97.5 percentiles of 2,000 bootstrap draws over"
_BASES: Mapping[str, Mapping[str, str]] = {
    "spearman": {
        "title": "Spearman", "formula": "Spearman's correlation of the cosines of pairs with their scores",
        "says": "Whether cosines rank pairs of texts as people do.", "misleads": "Ranks alone: a repair may "
        "stretch cosines, which thresholds notice, and change nothing here. Pairs that share a text are "
        "drawn as if they did not.", "null": "0", "interval": f"{_DRAWN} pairs", "range": "-1 to 1",
    },
    "pearson": {
        "title": "Pearson", "formula": "Pearson's correlation of the cosines of pairs with their scores",
        "says": "Whether cosines grow in proportion to what people say.",
        "misleads": "A stretch of the scale of cosines moves it, with the ranks as they were.", "null": "0",
        "interval": f"{_DRAWN} pairs", "range": "-1 to 1",
    },
    "accuracy": {
        "title": "accuracy of a probe", "formula": "share right of a logistic regression on standardised "
        "vectors, its ridge chosen by 5-fold cross-validation in the fitting part",
        "says": "How much of the classes a line can read off the vectors.",
        "misleads": "The interval is over the judged examples; another fitting part may give another line.",
        "null": "the share of the most frequent class among the judged examples",
        "interval": f"{_DRAWN} judged examples", "range": "0 to 1",
    },
    "recall_1": {
        "title": "recall at 1", "formula": "share of queries whose nearest document is a right one",
        "says": "Whether cosines find what is sought.",
        "misleads": "Documents that no pair names as right count as wrong, however well they answer.",
        "null": "documents in a random order", "interval": f"{_DRAWN} queries", "range": "0 to 1",
    },
    "hub_skewness": {
        "title": "skewness of hubs",
        "formula": "E(N−k)³/σ³ of N, how often a vector is among the 10 nearest of another",
        "says": "Whether a few vectors are everybody's neighbours; less is better.",
        "misleads": "Draws keep each vector's count; it grows with n and with the dimensions.",
        "null": "1/√k: neighbours chosen by chance", "interval": f"{_DRAWN} vectors", "range": "any size",
    },
    "perplexity": {
        "title": "perplexity",
        "formula": "exp of the mean loss of the next token, the repaired state before the head",
        "says": "How well the model still speaks when its last state is repaired; less is better.",
        "misleads": "The head learnt the states as they were. A rotation alone would ruin it.",
        "null": "none", "interval": f"{_DRAWN} sequences", "range": "1 to any size",
    },
}  # fmt: skip
_ALIKE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "accuracy_ridge": ("accuracy", {
        "title": "accuracy of a ridge",
        "formula": "the same on vectors as they are, the ridge relative to their variance"}),
    "accuracy_unpenalised": ("accuracy", {
        "title": "accuracy of an unpenalised probe", "formula": "the same without a ridge"}),
    "recall_10": ("recall_1", {
        "title": "recall at 10", "formula": "share of queries with a right document among the 10 nearest"}),
    "reciprocal_rank": ("recall_1", {
        "title": "mean reciprocal rank",
        "formula": "mean of 1/rank of the first right document; a tie counts against it"}),
    "anti_hubs": ("hub_skewness", {
        "title": "share of anti-hubs", "formula": "share of vectors that are among nobody's 10 nearest",
        "says": "How many vectors no search would find; less is better.",
        "null": "e^−k: neighbours chosen by chance", "range": "0 to 1"}),
}  # fmt: skip


def explanations(scores: Iterable[tuple[str, str]]) -> dict[str, dict[str, object]]:
    """Explain scores, each with the name of its task or none, and the change of each."""
    told: dict[str, dict[str, object]] = {}
    for score, task in scores:
        like, own = _ALIKE.get(score, (score, {}))
        words: dict[str, object] = {**_BASES[like], **own, "family": "impact", "source": "isoscope"}
        words["title"] = f"{words['title']}{f', {task}' if task else ''}"
        measure = f"{score}.{task}" if task else score
        told[measure] = words
        told[f"{measure}{CHANGE}"] = {
            **words, "title": f"change of {words['title']}", "null": "0",
            "formula": "after the repair less before, of the same units",
            "says": "Whether the repair helped: its tag is the verdict, and its note explains it.",
            "interval": f"{words['interval']}, the same before and after",
        }  # fmt: skip
    return told


EXPLANATIONS = explanations((score, "") for score in (*_BASES, *_ALIKE))
"""What is told of every score and of its change, without the name of a task."""
