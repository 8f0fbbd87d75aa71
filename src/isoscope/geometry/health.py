"""What cannot be used: vectors that are not finite, vectors without a direction."""

from __future__ import annotations

from torch import Tensor


def not_finite(points: Tensor) -> float:
    """The number of rows of `points` [n, d] with a NaN or an Inf.

    >>> import torch
    >>> not_finite(torch.tensor([[1.0, float("nan")], [1.0, 2.0]]))
    1.0
    """
    return float((~points.isfinite()).any(dim=1).sum())


def zero_vectors(points: Tensor) -> float:
    """The number of rows of `points` [n, d] that are zero.

    >>> import torch
    >>> zero_vectors(torch.tensor([[0.0, 0.0], [1.0, 2.0]]))
    1.0
    """
    return float((points == 0).all(dim=1).sum())
