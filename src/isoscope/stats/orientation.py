"""The record of Σûûᵀ, d×d: how directions are spread, whichever way along them the vectors point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.scatter.scatter import scatter
from isoscope.stats.base import added
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
        seen = seen.thinned
        found = seen.sums
        products = scatter(seen.points, unit_weight(seen), torch.zeros_like(found.mean))
        return cls(found.pointing.sum(-1), found.unit.sum(-2), products)

    def merge(self, other: Self) -> Self:
        """Add field by field."""
        return added(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one d×d matrix."""
        return 8 * width * (width + 1)
