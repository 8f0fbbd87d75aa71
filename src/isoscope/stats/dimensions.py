"""The record of single coordinates: the variance of each, the largest activation, and massive ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.geometry.dimensions import MASSIVE, TIMES_MEDIAN
from isoscope.kernels.sums import slices
from isoscope.stats.seen import Vectors


@dataclass(frozen=True)
class Dimensions:
    """n, mean and Σ(x−x̄)² of every dimension; the largest |x|; how many |x| are massive, and where."""

    count: Tensor  # []
    mean: Tensor  # [d]
    scatter: Tensor  # [d]
    largest: Tensor  # [d]
    massive: Tensor  # [d]

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        device, n = seen.points.device, len(seen.points)
        zero = torch.zeros(seen.width, dtype=torch.float64, device=device)
        total, scatter, largest = zero.clone(), zero.clone(), zero.clone()
        for _, part in slices(seen.points):
            total += part.sum(0)
            largest = torch.maximum(largest, part.abs().amax(0))
        mean = total / max(n, 1)
        for _, part in slices(seen.points):
            scatter += ((part - mean) ** 2).sum(0)
        massive = _massive(seen) if n and float(largest.max()) > MASSIVE else zero
        return cls(
            torch.tensor(float(n), dtype=torch.float64, device=device), mean, scatter, largest, massive
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams, by Chan's rule."""
        count = self.count + other.count
        share = other.count / count.clamp_min(1)
        apart = other.mean - self.mean
        return type(self)(
            count,
            self.mean + share * apart,
            self.scatter + other.scatter + self.count * share * apart**2,
            torch.maximum(self.largest, other.largest),
            self.massive + other.massive,
        )

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: four numbers a dimension."""
        return 8 * (4 * width + 1)


def _massive(seen: Vectors) -> Tensor:
    """The massive activations of every dimension, [d]; only sequences that reach far are looked into."""
    far = seen.points.abs().amax(1) > MASSIVE
    label = torch.arange(len(far), device=far.device) if seen.sequence is None else seen.sequence
    found = torch.zeros(seen.width, dtype=torch.float64, device=far.device)
    for name in torch.unique(label[far]).tolist():
        size = seen.points[label == name].double().abs()
        found += ((size > MASSIVE) & (size >= TIMES_MEDIAN * size.median())).sum(0)
    return found
