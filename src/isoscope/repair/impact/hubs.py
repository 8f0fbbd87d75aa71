"""Hubs as scores of an impact: how skewed neighbourhood is, and how many vectors are nobody's neighbour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isoscope.errors import IsoscopeError
from isoscope.repair.hubs import (
    NEAREST,
    anti_hubs,
    anti_hubs_by_chance,
    hub_skewness,
    occurrences,
    skewness_by_chance,
)
from isoscope.repair.impact.outcome import Array, Outcome
from isoscope.repair.impact.scores import unit

AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Hubs:
    """How often each vector is among the k nearest of another, [n], and its cosine to its own kth, [n]."""

    occurrences: Array
    reach: Array
    k: int

    @property
    def skewness(self) -> float:
        """The skewness of the occurrences."""
        return float(hub_skewness(self.occurrences))

    @property
    def anti_hubs(self) -> float:
        """The share of vectors that are nobody's neighbour."""
        return float(anti_hubs(self.occurrences))


def hubness(vectors: Array, k: int = NEAREST) -> Hubs:
    """Count how often each of `vectors` [n, d] is among the k nearest of the others, by cosine.

    >>> circle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    >>> found = hubness(np.stack([np.cos(circle), np.sin(circle)], axis=1), k=2)
    >>> found.occurrences.tolist(), found.skewness, found.anti_hubs
    ([2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2], 0.0, 0.0)
    """
    n = len(vectors)
    if not 1 <= k < n:
        raise IsoscopeError(f"{k} nearest neighbours need at least {max(k, 1) + 1} vectors; got {n}.")
    directions = unit(np.asarray(vectors, dtype=np.float64))
    counts, reach = np.zeros(n, dtype=np.int64), np.empty(n)
    for start in range(0, n, AT_ONCE):
        part = directions[start : start + AT_ONCE]
        cosines = part @ directions.T
        cosines[np.arange(len(part)), np.arange(start, start + len(part))] = -np.inf
        near = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        counts += occurrences(near, n)
        reach[start : start + len(part)] = np.take_along_axis(cosines, near[:, -1:], axis=1)[:, 0]
    return Hubs(counts, reach, k)


def hub_outcomes(vectors: Array, k: int = NEAREST) -> list[Outcome]:
    """Skewness and share of anti-hubs, as scores of which less is better; drawn over vectors.

    Draws keep each vector's count: neighbours are not looked for again among those drawn.
    """
    found = hubness(vectors, k)
    counts = found.occurrences.astype(np.float64)
    scores: list[tuple[str, Callable[[Array], Array], float]] = [
        ("hub_skewness", lambda at: hub_skewness(counts[at]), skewness_by_chance(k)),
        ("anti_hubs", lambda at: anti_hubs(counts[at]), anti_hubs_by_chance(k)),
    ]
    return [
        Outcome(name, "vectors", len(counts), score, found.reach, "cosine", sign=-1, null=null)
        for name, score, null in scores
    ]
