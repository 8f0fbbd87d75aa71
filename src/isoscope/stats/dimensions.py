"""The record of single coordinates: the variance of each, the largest activation, and massive ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.seen import Vectors


@dataclass(frozen=True)
class Dimensions:
    """n, mean and Σ(x−x̄)² of every dimension; the largest |x|; how many |x| are massive, and where."""

    count: Tensor  # []
    mean: Tensor  # [d]
    scatter: Tensor  # [d]
    largest: Tensor  # [d]
    massive: Tensor  # [d]
    by_dimension = True

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        found = seen.sums
        return cls(found.count.sum(-1), found.mean, found.scatter, found.largest, found.beyond)

    def merge(self, other: Self) -> Self:
        """The record of both streams, by Chan's rule."""
        count = self.count + other.count
        share = (other.count / count.clamp_min(1))[..., None]
        apart = other.mean - self.mean
        return type(self)(
            count,
            self.mean + share * apart,
            self.scatter + other.scatter + self.count[..., None] * share * apart**2,
            torch.maximum(self.largest, other.largest),
            self.massive + other.massive,
        )

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: four numbers a dimension."""
        return 8 * (4 * width + 1)
