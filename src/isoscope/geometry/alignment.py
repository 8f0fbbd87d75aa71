"""How alike two layers see the same positions: linear CKA without its bias.

The plain form reads well above 0 for unrelated layers as soon as dimensions are not few against vectors;
with U-centred products (Székely & Rizzo 2014) its mean there is 0, and it stays within [−1, 1].
"""

from __future__ import annotations

import math

from torch import Tensor


def cka(points: Tensor, other: Tensor) -> float:
    """⟨K, L⟩/√(⟨K, K⟩⟨L, L⟩), K and L the U-centred XXᵀ and YYᵀ of the same positions, in [−1, 1]."""
    if len(points) < 4:
        return math.nan
    mine, its = u_centred(points.double()), u_centred(other.double())
    size = math.sqrt(float((mine**2).sum() * (its**2).sum()))
    return float((mine * its).sum()) / size if size > 0 else math.nan


def u_centred(points: Tensor) -> Tensor:
    """XXᵀ, made so that every row and column sums to zero off a diagonal of zeros, [n, n]."""
    n = len(points)
    points = points - points.mean(0)  # changes nothing below but the rounding
    products = (points @ points.T).fill_diagonal_(0)
    rows = products.sum(1) / (n - 2)
    centred = products - rows[:, None] - rows[None, :] + products.sum() / ((n - 1) * (n - 2))
    return centred.fill_diagonal_(0)
