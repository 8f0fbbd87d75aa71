"""How many dimensions the cloud has near a point: read from distances to the nearest neighbours.

Vectors that occur more than once count once: a neighbour at distance zero says nothing about dimensions.
The same token gives the same vector but for rounding, so those closer than 1e-5 of the cloud's size are one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEIGHBOURS = 20
SAME = 1e-5  # of the root of the mean squared distance from the mean
KEPT = 0.9  # of the ratios in the fit of TwoNN: the largest are outliers of the tail


def nearest(points: Tensor, count: int = NEIGHBOURS) -> Tensor:
    """Distances from every distinct vector to its nearest others, ascending, [m, count].

    Computed about the mean: ‖x‖² + ‖y‖² − 2x·y loses the distance when the cloud lies far off.
    """
    points = points.double()
    if len(points) < 2:
        return points.new_zeros(len(points), 0)
    points = points - points.mean(0)
    squares = (points**2).sum(1)
    squared = squares[:, None] + squares[None, :]
    squared -= 2 * points @ points.T
    same = squared <= SAME**2 * squares.mean()
    if int(same.sum()) > len(points):  # others than every vector with itself
        again = same.tril(-1).any(1)
        squared = squared[~again][:, ~again]
    squared.fill_diagonal_(math.inf)
    count = min(count, len(squared) - 1)
    return squared.topk(count, largest=False, sorted=True).values.clamp_min(0).sqrt()


def intrinsic_dimension(points: Tensor) -> float:
    """TwoNN (Facco et al. 2017): the slope of −log(1 − F(μ)) against log μ, μ = r₂/r₁, F its distribution."""
    near = nearest(points)
    return two_nearest(near) if len(near) > NEIGHBOURS else math.nan


def two_nearest(near: Tensor) -> float:
    """TwoNN from the distances to the nearest, [m, ≥ 2]."""
    ratio = (near[:, 1] / near[:, 0]).sort().values
    ratio = ratio[ratio.isfinite()]
    share = torch.arange(len(ratio), dtype=torch.float64) / max(len(ratio), 1)
    kept = int(KEPT * len(ratio))
    x, y = ratio[:kept].log(), -torch.log1p(-share[:kept])
    return float((x @ y) / (x @ x)) if kept and float(x @ x) > 0 else math.nan


def local_dimension(points: Tensor) -> float:
    """The mean over vectors of −[1/k Σ log(r_i/r_k)]⁻¹, k = 20 nearest (Levina & Bickel 2004)."""
    near = nearest(points)
    return by_neighbours(near) if len(near) > NEIGHBOURS else math.nan


def by_neighbours(near: Tensor) -> float:
    """The mean local dimension from the distances to the k nearest, [m, k]."""
    spread = -(near / near[:, -1:]).log().mean(1)
    spread = spread[spread.isfinite() & (spread > 0)]
    return float((1 / spread).mean()) if len(spread) else math.nan
