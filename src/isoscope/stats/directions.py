"""The record of directions: sums of û = x/‖x‖. Vectors of norm zero have none and are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.sums import slices
from isoscope.stats.seen import GROUPS, Vectors
from isoscope.stats.sums import Sums


def unit_weight(seen: Vectors) -> Tensor:
    """1/‖x‖ for each vector, 0 where ‖x‖ is 0, [n]."""
    return torch.where(seen.norm > 0, 1 / seen.norm, 0.0)


@dataclass(frozen=True)
class Directions:
    """Sums of unit vectors, and of the squares of their coordinates."""

    sums: Sums
    squares: Tensor  # [d] Σ û_k²
    zeros: int

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        weight = unit_weight(seen)
        squares = torch.zeros(seen.width, dtype=torch.float64, device=seen.points.device)
        for rows, part in slices(seen.points):
            squares += weight[rows] ** 2 @ part**2
        return cls(Sums.of(seen, weight), squares, int((weight == 0).sum()))

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return type(self)(self.sums.merge(other.sums), self.squares + other.squares, self.zeros + other.zeros)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one sum a group."""
        return 8 * (GROUPS + 2) * width

    def contributions(self) -> Tensor:
        """What each dimension adds to the mean cosine, [d]. Twin: `cosine.dimension_contributions`."""
        n = self.sums.count.sum()
        return (self.sums.total.sum(0) ** 2 - self.squares) / (n * (n - 1))
