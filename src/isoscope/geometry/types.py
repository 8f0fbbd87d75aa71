"""Token types: one token over its contexts, and rare tokens against frequent ones.

Every type counts the same, however often it occurs; and what is compared between types are means over
pairs of vectors, never cosines of means: averaging over contexts takes noise away, which would make
frequent types look alike. So where tokens make no difference these readings find none.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.geometry.cosine import mean_cosine_between

RARE, FREQUENT = 1e-4, 1e-3
"""Rare is less than one in ten thousand vectors, frequent at least one in a thousand."""

BANDS: dict[str, tuple[float, float]] = {
    "rare": (0.0, RARE),
    "middle": (RARE, FREQUENT),
    "frequent": (FREQUENT, math.inf),
}
LEAST = 8  # types that make a correlation


def self_similarity(points: Tensor, token: Tensor, sequence: Tensor) -> float:
    """The mean over types of the mean cosine between its vectors of different sequences, in [−1, 1]."""
    mine = [token == name for name in torch.unique(token).tolist()]
    found = [mean_cosine_between(points[each], sequence[each]) for each in mine]
    known = [value for value in found if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def self_similarity_adjusted(points: Tensor, token: Tensor, sequence: Tensor) -> float:
    """`self_similarity` less the mean cosine between sequences, in [−2, 2]."""
    return self_similarity(points, token, sequence) - mean_cosine_between(points, sequence)


def band_cosine(points: Tensor, token: Tensor, band: str) -> float:
    """The mean over pairs of types of this band of the mean cosine between their vectors, in [−1, 1]."""
    norm = points.double().norm(dim=1)
    unit = torch.where(norm[:, None] > 0, points.double() / norm[:, None], 0.0)
    means = [unit[(token == name) & (norm > 0)].mean(0) for name in _types(token, band)]
    means = [mean for mean in means if not mean.isnan().any()]
    found = [float(one @ other) for i, one in enumerate(means) for other in means[:i]]
    return sum(found) / len(found) if found else math.nan


def band_drift(points: Tensor, token: Tensor, band: str) -> float:
    """‖mean of the types' means‖ over the mean of their mean norms, types of this band, in [0, 1]."""
    names = _types(token, band)
    if not names:
        return math.nan
    points = points.double()
    centre = torch.stack([points[token == name].mean(0) for name in names]).mean(0)
    norm = sum(float(points[token == name].norm(dim=1).mean()) for name in names) / len(names)
    return float(centre.norm()) / norm if norm > 0 else math.nan


def frequency_correlation(points: Tensor, token: Tensor) -> float:
    """Pearson r over types of log frequency with the projection on the mean of the *other* types, in [−1, 1].

    Were a type's own vector part of that mean, rare types, whose means are noisier, would seem to lie along.
    """
    names = torch.unique(token).tolist()
    if len(names) < LEAST:
        return math.nan
    means = torch.stack([points[token == name].double().mean(0) for name in names])
    along = torch.stack([mean @ (means.sum(0) - mean) for mean in means])
    often = torch.tensor([float((token == name).sum()) for name in names], dtype=torch.float64).log()
    return float(torch.corrcoef(torch.stack([along, often]))[0, 1])


def _types(token: Tensor, band: str) -> list[int]:
    low, high = BANDS[band]
    names, count = torch.unique(token, return_counts=True)
    share = count.double() / len(token)
    return names[(share >= low) & (share < high)].tolist()
