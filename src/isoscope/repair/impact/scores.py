"""Scores of vectors by cosine: similarity of pairs, retrieval, and hubs. Pure functions on arrays [n, d].

A vector with NaN or Inf takes its pair or query out, counted; a document with one is never found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from isoscope.errors import IsoscopeError
from isoscope.repair.hubs import NEAREST, anti_hubs, by_chance, hub_skewness, occurrences
from isoscope.repair.impact.outcome import Array, Outcome, mean_of

RECALLED = (1, 10)  # the k of recall@k
_AT_ONCE = 512
_NEAR_AT_ONCE = 1024


def unit(vectors: Array) -> Array:
    """Each row of `vectors` [n, d] divided by its norm; NaN where that is 0."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, np.nan)


def similarity(first: Array, second: Array, scores: Array) -> list[Outcome]:
    """Spearman's and Pearson's correlation of the cosines of `first` and `second` [n, d] with scores [n]."""
    kept = np.isfinite(first).all(1) & np.isfinite(second).all(1)
    scores = np.asarray(scores, dtype=np.float64)[kept]
    refuse_constant_scores(scores)
    cosines = (unit(first[kept]) * unit(second[kept])).sum(1)
    lost = int((~kept).sum())

    def rank(places: Array) -> Array:
        return correlation(rankdata(cosines[places], axis=1), rankdata(scores[places], axis=1))

    def line(places: Array) -> Array:
        return correlation(cosines[places], scores[places])

    return [
        Outcome(name, "pairs", len(scores), score, cosines, "cosine", null=0.0, left_out=lost)
        for name, score in (("spearman", rank), ("pearson", line))
    ]


def refuse_constant_scores(scores: Array) -> None:
    """Say that there are no pairs to rank, or none that differ."""
    if len(scores) < 3 or np.ptp(scores) == 0:
        kinds = len(np.unique(scores))
        got = f"got {len(scores)} pairs of {kinds} score{'' if kinds == 1 else 's'}"
        raise IsoscopeError(f"a correlation needs three pairs or more of different scores; {got}.")


def correlation(x: Array, y: Array) -> Array:
    """Pearson's correlation of each row of x [b, n] with that of y, [b]; NaN where one does not vary."""
    x = x - x.mean(1, keepdims=True)
    y = y - y.mean(1, keepdims=True)
    size = np.sqrt((x**2).sum(1) * (y**2).sum(1))
    found: Array = (x * y).sum(1) / np.where(size > 0, size, np.nan)
    return found


def retrieval(queries: Array, documents: Array, right: Sequence[Sequence[int]]) -> list[Outcome]:
    """Recall@k and mean reciprocal rank of the first document of `right`, by cosine; a tie is a loss."""
    kept = np.asarray(np.isfinite(queries).all(1))
    places = [list(own) for own, there in zip(right, kept.tolist(), strict=True) if there]
    towards = unit(queries[kept])
    known = unit(np.where(np.isfinite(documents).all(1, keepdims=True), documents, np.nan))
    ranks, best = np.empty(len(towards)), np.empty(len(towards))
    for start in range(0, len(towards), _AT_ONCE):
        cosines = np.nan_to_num(towards[start : start + _AT_ONCE] @ known.T, nan=-2.0)
        for row, found in enumerate(cosines):
            own = places[start + row]
            best[start + row] = found[own].max()
            others = np.delete(found, own)
            ranks[start + row] = 1 + (others >= best[start + row]).sum()
    found = {f"recall_{k}": (ranks <= k).astype(np.float64) for k in RECALLED}
    found["reciprocal_rank"] = 1 / ranks
    lost, nulls = int((~kept).sum()), _by_chance(len(known), [len(own) for own in places])
    return [
        Outcome(name, "queries", len(hits), mean_of(hits), best, "cosine", null=null, left_out=lost)
        for (name, hits), null in zip(found.items(), nulls, strict=True)
    ]


def _by_chance(many: int, right: Sequence[int]) -> list[float]:
    """Recalls and reciprocal rank of `many` documents in a random order, of which so many are `right`."""
    own, weight = np.unique(np.asarray(right, dtype=np.int64), return_counts=True)
    before = np.arange(many)
    missed = np.maximum(many - own[:, None] - before, 0) / (many - before)
    found = 1 - np.cumprod(missed, axis=1)  # [kinds, many]: that one is among the first r
    ranks = (np.diff(found, axis=1, prepend=0.0) / np.arange(1, many + 1)).sum(1)
    each = [*(found[:, min(k, many) - 1] for k in RECALLED), ranks]
    return [float(np.average(one, weights=weight)) if len(one) else math.nan for one in each]


def neighbours(vectors: Array, k: int = NEAREST) -> tuple[Array, Array]:
    """How often each of `vectors` [n, d] is among the k nearest of another, and its cosine to its own kth."""
    n = len(vectors)
    if not 1 <= k < n:
        raise IsoscopeError(f"{k} nearest neighbours need at least {max(k, 1) + 1} vectors; got {n}.")
    directions = unit(np.asarray(vectors, dtype=np.float64))
    counts, reach = np.zeros(n, dtype=np.int64), np.empty(n)
    for start in range(0, n, _NEAR_AT_ONCE):
        part = directions[start : start + _NEAR_AT_ONCE]
        cosines = part @ directions.T
        cosines[np.arange(len(part)), np.arange(start, start + len(part))] = -np.inf
        near = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        counts += occurrences(near, n)
        reach[start : start + len(part)] = np.take_along_axis(cosines, near[:, -1:], axis=1)[:, 0]
    return counts, reach


def hub_outcomes(vectors: Array, k: int = NEAREST) -> list[Outcome]:
    """Skewness and share of anti-hubs, of which less is better; drawn over vectors, each with its count."""
    occurring, reach = neighbours(vectors, k)
    counts = occurring.astype(np.float64)
    skewed, nobody = by_chance(k)
    shared = (reach, "cosine", -1)
    return [
        Outcome("hub_skewness", "vectors", len(counts), lambda at: hub_skewness(counts[at]), *shared, skewed),
        Outcome("anti_hubs", "vectors", len(counts), lambda at: anti_hubs(counts[at]), *shared, nobody),
    ]
