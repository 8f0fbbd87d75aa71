"""The record of directions: sums of û = x/‖x‖. Vectors of norm zero have none and are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.base import added
from isoscope.stats.seen import GROUPS, Vectors
from isoscope.stats.sums import Sums


def unit_weight(seen: Vectors) -> Tensor:
    """1/‖x‖ for each vector, 0 where ‖x‖ is 0, [n]."""
    return torch.where(seen.norm > 0, 1 / seen.norm, 0.0)


@dataclass(frozen=True)
class Directions:
    """Sums of unit vectors."""

    sums: Sums
    zeros: Tensor  # []

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        found = seen.sums
        return cls(Sums.of_directions(seen), (found.count - found.pointing).sum(-1))

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return added(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one sum a group."""
        return 8 * (GROUPS + 1) * width


@dataclass(frozen=True)
class Contributions:
    """Sums of unit vectors, and of the squares of their coordinates."""

    sums: Sums
    squares: Tensor  # [d] Σ û_k²
    by_dimension = True

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        return cls(Sums.of_directions(seen), seen.sums.unit_squares)

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return added(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one sum a group, and the squares."""
        return 8 * (GROUPS + 2) * width

    def contributions(self) -> Tensor:
        """What each dimension adds to the mean cosine, [d]. Twin: `cosine.dimension_contributions`."""
        n = self.sums.count.sum()
        return (self.sums.total.sum(0) ** 2 - self.squares) / (n * (n - 1))
