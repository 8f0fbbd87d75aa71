"""What cannot be used: vectors that are not finite, vectors without a direction."""

from __future__ import annotations

from torch import Tensor


def not_finite(points: Tensor) -> float:
    """The number of rows of `points` [n, d] with a NaN or an Inf."""
    return float((~points.isfinite()).any(dim=1).sum())


def zero_vectors(points: Tensor) -> float:
    """The number of rows of `points` [n, d] that are zero."""
    return float((points == 0).all(dim=1).sum())
