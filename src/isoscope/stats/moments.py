"""The record of spread: mean and centred scatter, d×d, of each of two halves of the sequences.

Centred within every batch and joined by Chan's rule. The shortcut XᵀX − n·x̄x̄ᵀ loses the spread
when the mean is large: 1.4 % off in float32 at a mean of 100 spreads, useless at 1000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.rank_one import with_rank_one
from isoscope.kernels.scatter.scatter import merged, scatter
from isoscope.stats.seen import Vectors


@dataclass(frozen=True)
class Moments:
    """n, mean and Σ(x−x̄)(x−x̄)ᵀ of each part; two parts, or one where two would not fit."""

    count: Tensor  # [p]
    mean: Tensor  # [p, d]
    scatter: Tensor  # [p, d, d]

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        seen = seen.thinned
        count, mean = seen.means(parts)
        points, weight = seen.points, seen.kept.double()
        ends: tuple[int, ...] = (0, weight.shape[-1])
        if parts > 1:
            rows, first = seen.places.by_half
            points, weight, ends = points.index_select(-2, rows), weight[..., rows], (0, first, len(rows))
        found = mean.new_empty(*mean.shape, seen.width)
        for half, (start, stop) in enumerate(pairwise(ends)):
            of_half = points[..., start:stop, :], weight[..., start:stop], mean[..., half, :]
            scatter(*of_half, out=found[..., half, :, :])
        return cls(count, mean, found)

    def merge(self, other: Self) -> Self:
        """The record of both streams, by Chan's rule."""
        mine, its = self.count.shape[-1], other.count.shape[-1]
        if mine != its:
            raise ValueError(f"records of {mine} and of {its} parts do not merge")
        count = self.count + other.count
        share = other.count / count.clamp_min(1)
        apart = other.mean - self.mean
        mean = self.mean + share[..., None] * apart
        weighed = (self.count * share)[..., None] * apart
        return type(self)(count, mean, merged(self.scatter, other.scatter, weighed, apart))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one d×d matrix a part."""
        return 8 * parts * width * (width + 1)

    @property
    def n(self) -> int:
        """How many vectors."""
        return int(self.count.sum())

    @cached_property
    def whole(self) -> Moments:
        """All parts as one."""
        joined = Moments(self.count[:1], self.mean[:1], self.scatter[:1])
        for p in range(1, len(self.count)):
            joined = joined.merge(
                Moments(self.count[p : p + 1], self.mean[p : p + 1], self.scatter[p : p + 1])
            )
        return joined

    @cached_property
    def spread(self) -> Tensor:
        """Eigenvalues of the centred scatter, ascending, none negative, [d]."""
        return (
            self._spread_and_extent[0] if self.mean.is_cuda else _sound(torch.linalg.eigvalsh(self._centred))
        )

    @cached_property
    def extent(self) -> Tensor:
        """Eigenvalues of XᵀX, mean included, ascending, none negative, [d]."""
        if self.mean.is_cuda:
            return self._spread_and_extent[1]
        mean = self.whole.mean[0]
        return _sound(torch.linalg.eigvalsh(self._centred + self.n * torch.outer(mean, mean)))

    @cached_property
    def noise(self) -> float:
        """1/ν, ν the degrees of freedom of a Gaussian covariance that is as noisy; NaN of one part.

        The noise of S, E tr S² − tr Σ² = ((tr Σ)² + tr Σ²)/ν, shows in the difference of two halves' S.
        """
        if len(self.count) < 2 or float(self.count.min()) < 2:
            return math.nan
        first, second = self.scatter / self.count[:, None, None]
        apart = float((first - second).square().sum() * self.count.prod()) / self.n**2
        size = float(first.trace() * second.trace() + (first * second).sum())
        return apart / size if size > 0 else math.nan

    @property
    def _centred(self) -> Tensor:
        return self.whole.scatter[0]

    @cached_property
    def _spread_and_extent(self) -> tuple[Tensor, Tensor]:
        """Both from one decomposition: on a GPU eigenvectors cost next to nothing beside the eigenvalues."""
        values, vectors = torch.linalg.eigh(self._centred)
        along = vectors.mT @ self.whole.mean[0]
        return _sound(values), _sound(with_rank_one(values, along, self.n))


def _sound(values: Tensor) -> Tensor:
    """Ascending; those that are rounding are zero: where vectors are few they would add up in an entropy."""
    rounding = len(values) * torch.finfo(values.dtype).eps * values[-1]
    return torch.where(values > rounding, values, 0)
