"""The record of Σûûᵀ, d×d: how directions are spread, whichever way along them the vectors point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.sums import slices
from isoscope.stats.directions import unit_weight
from isoscope.stats.seen import Vectors


@dataclass(frozen=True)
class Orientation:
    """Σû and Σûûᵀ over all vectors that have a direction."""

    count: Tensor  # []
    total: Tensor  # [d]
    products: Tensor  # [d, d]

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        weight = unit_weight(seen)
        products = torch.zeros(seen.width, seen.width, dtype=torch.float64, device=seen.points.device)
        total = torch.zeros(seen.width, dtype=torch.float64, device=seen.points.device)
        for rows, points in slices(seen.points):
            unit = points * weight[rows, None]
            products.addmm_(unit.T, unit)
            total += unit.sum(0)
        return cls((weight > 0).sum().double(), total, products)

    def merge(self, other: Self) -> Self:
        """Add field by field."""
        return type(self)(self.count + other.count, self.total + other.total, self.products + other.products)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one d×d matrix."""
        return 8 * width * (width + 1)
