"""How alike directions are: cosines over all pairs, between sequences, their variance, their parts.

A vector of norm zero has no direction and is left out. Fewer than two directions have no pairs: NaN.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def directions(points: Tensor) -> Tensor:
    """û = x/‖x‖ for every non-zero row of `points` [n, d], in float64."""
    points = points.double()
    norms = points.norm(dim=1)
    return points[norms > 0] / norms[norms > 0, None]


def pair_cosines(points: Tensor) -> Tensor:
    """The cosines of all distinct pairs, [n(n−1)/2]."""
    unit = directions(points)
    first, second = torch.triu_indices(len(unit), len(unit), offset=1)
    return (unit @ unit.T)[first, second]


def mean_cosine(points: Tensor) -> float:
    """A = mean of cos(x_i, x_j) over all i ≠ j, in [−1/(n−1), 1]."""
    return float(pair_cosines(points).mean())


def mean_cosine_between(points: Tensor, sequence: Tensor) -> float:
    """The mean of cos(x_i, x_j) over pairs from different sequences, in [−1, 1].

    Vectors of one sequence are alike, so pairs inside it inflate A; these pairs are left out.
    """
    unit = directions(points)
    label = sequence[points.double().norm(dim=1) > 0]
    apart = label[:, None] != label[None, :]
    return float((unit @ unit.T)[apart].mean())


def cosine_variance(points: Tensor) -> float:
    """The variance of cos(x_i, x_j) over all i ≠ j, in [0, 1]; 1/d for isotropic directions."""
    cosines = pair_cosines(points)
    return float(cosines.var(correction=0)) if len(cosines) else math.nan


def dimension_contributions(points: Tensor) -> Tensor:
    """What each dimension adds to A: mean of û_i[k]·û_j[k] over all i ≠ j, [d]; they sum to A."""
    unit = directions(points)
    n = len(unit)
    products = unit.sum(0) ** 2 - (unit**2).sum(0)
    return products / (n * (n - 1)) if n > 1 else torch.full_like(products, math.nan)


def rogue_contribution(points: Tensor) -> float:
    """The largest of the `dimension_contributions`: how much of A one single dimension makes."""
    return float(dimension_contributions(points).max())


def uniformity(points: Tensor) -> float:
    """The log of the mean of exp(−2‖û_i − û_j‖²) over all i ≠ j, in [−8, 0] (Wang & Isola 2020)."""
    cosines = pair_cosines(points)
    return float((4 * cosines - 4).exp().mean().log()) if len(cosines) else math.nan
