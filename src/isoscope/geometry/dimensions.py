"""Single coordinates that stand out: in their variance, or in the size of one activation."""

from __future__ import annotations

import math

import torch
from torch import Tensor

OUTLIER = 5.0
"""A dimension stands out when its variance is so many times the mean variance (Rudman et al. 2023)."""

MASSIVE, TIMES_MEDIAN = 100.0, 1000.0
"""Massive is above the first, and so many times the median of its sequence (Sun et al. 2024)."""

SAMPLE = 4096
"""Of a sequence with more coordinates than this the median is that of so many: within two per cent."""


def outlier_dimensions(points: Tensor) -> float:
    """The number of dimensions whose variance is at least 5 times the mean over dimensions, in [0, d/5]."""
    if len(points) < 2:
        return math.nan
    variance = points.double().var(dim=0, correction=0)
    return float((variance >= OUTLIER * variance.mean()).sum()) if float(variance.sum()) > 0 else 0.0


def massive_activations(points: Tensor, sequence: Tensor) -> float:
    """The number of coordinates beyond 100 and 1000 times the median size of their sequence's coordinates."""
    found = 0
    for name in torch.unique(sequence):
        own = points[sequence == name].double()
        size = own.abs()
        found += int(((size > MASSIVE) & (size >= TIMES_MEDIAN * median_size(own))).sum())
    return float(found) if len(points) else math.nan


def median_size(points: Tensor) -> float:
    """The median |x| over the coordinates of one sequence, from a sample where `SAMPLE` are fewer."""
    size = points.double().abs().flatten()
    return float(size[spread_over(len(size), min(SAMPLE, len(size)))].median()) if len(size) else math.nan


def spread_over(total: int, many: int) -> Tensor:
    """`many` of the numbers 0 … total−1: all of them, or as evenly as multiples of the golden ratio fall.

    A fixed step would meet the same few dimensions in every vector.
    """
    if many >= total:
        return torch.arange(total)
    golden = (math.sqrt(5) - 1) / 2
    return (((torch.arange(many, dtype=torch.float64) + 0.5) * golden).frac() * total).long()


def largest_activation(points: Tensor) -> float:
    """The largest size of any coordinate."""
    return float(points.double().abs().max()) if len(points) else math.nan
