"""Repairs written out on the whole matrix in float64, from their definitions; and clouds to try them on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

RECIPES = (
    "centre",
    "standardise",
    "abtt",
    "abtt:3",
    "whiten",
    "whiten:5",
    "cluster-abtt:3:2",
    "rogue",
    "abtt:2,whiten:5",
    "rogue:1,standardise,abtt:2,whiten:4,centre",
    "cluster-abtt:3:1,whiten:5",
)


def cloud(n: int, width: int, *, drift: float = 3.0) -> Tensor:
    """Vectors about a mean of so many spreads, wide in some directions and narrow in others."""
    spread = torch.randn(width, width, dtype=torch.float64) * torch.logspace(0, -1, width).double()
    return torch.randn(n, width, dtype=torch.float64) @ spread + drift * torch.randn(width).double()


def centred(points: Tensor) -> Tensor:
    return points - points.mean(0)


def all_but_the_top(points: Tensor, many: int) -> Tensor:
    """The mean away, then one direction after the other, by the SVD of what is left."""
    left = centred(points)
    for _ in range(many):
        top = torch.linalg.svd(left, full_matrices=False).Vh[0]
        left = left - torch.outer(left @ top, top)
    return left


def covariance(points: Tensor) -> Tensor:
    return torch.from_numpy(np.cov(points.double().numpy().T).reshape(points.shape[1], points.shape[1]))
