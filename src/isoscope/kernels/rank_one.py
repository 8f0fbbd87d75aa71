"""Eigenvalues after a rank-one term is added, from those before: no second decomposition."""

from __future__ import annotations

import torch
from torch import Tensor

_HALVINGS = 60  # of the gap between two eigenvalues: more than float64 tells apart


def with_rank_one(values: Tensor, along: Tensor, weight: float) -> Tensor:
    """The eigenvalues of diag(λ) + w·z zᵀ for λ [d] ascending, z [d] = `along` and w ≥ 0, ascending.

    One lies between every two neighbours of λ and one above: where 1 + w Σ z²/(λ − x), which ascends there,
    is zero (Golub 1973). All are bisected at once, as distances from the λ below. Twin:
    ``torch.linalg.eigvalsh(torch.diag(values) + weight * torch.outer(along, along))``.

    >>> found = with_rank_one(torch.tensor([1.0, 2.0]).double(), torch.tensor([0.0, 1.0]).double(), 3.0)
    >>> found.round(decimals=9).tolist()
    [1.0, 5.0]
    """
    squares = weight * along**2
    apart = values[None, :] - values[:, None]
    high = torch.cat([values.diff(), squares.sum()[None]])
    low = torch.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = 1 + (apart - middle[:, None]).reciprocal() @ squares < 0
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return values + (low + high) / 2
