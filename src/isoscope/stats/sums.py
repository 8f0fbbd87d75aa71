"""Sums of vectors by group of sequences, and the two readings that need no pair to be formed.

Both the mean cosine and the squared drift are means of inner products over pairs. Over all pairs it is
(‖Σx‖² − Σ‖x‖²)/(n(n−1)); over pairs from different sequences, which is unbiased when vectors of
one sequence depend on each other, (‖ΣX_s‖² − Σ‖X_s‖²)/(n² − Σn_s²), X_s the sum over sequence s.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.stats.base import added
from isoscope.stats.seen import Places, Summed, Vectors


@dataclass(frozen=True)
class Sums:
    """For each of 32 groups of sequences: how many vectors, their sum, and the same per sequence squared."""

    count: Tensor  # [G] vectors
    sequences: Tensor  # [G] sequences with at least one vector
    total: Tensor  # [G, d] Σ x
    squared: Tensor  # [G] Σ ‖x‖²
    count_squared: Tensor  # [G] Σ_s n_s²
    total_squared: Tensor  # [G] Σ_s ‖X_s‖²
    counted_total: Tensor  # [d] Σ_s n_s·X_s

    @classmethod
    def of(cls, seen: Vectors | Summed) -> Sums:
        """The sums of the vectors as they are."""
        return cls._of(seen.places, seen.sums.count, seen.sums.squares, seen.sums.total)

    @classmethod
    def of_directions(cls, seen: Vectors | Summed) -> Sums:
        """The sums of û = x/‖x‖; vectors of norm zero have none."""
        return cls._of(seen.places, seen.sums.pointing, seen.sums.pointing, seen.sums.unit)

    @classmethod
    def _of(cls, where: Places, count: Tensor, squared: Tensor, total: Tensor) -> Sums:
        """From how many there are of each label, Σ‖x‖² and Σx."""
        if where.sequence is None:  # labels are groups already, and every vector is a sequence
            return cls(count, count, total, squared, count, squared, total.sum(-2))
        each = torch.stack([count, (count > 0).double(), squared, count**2, (total**2).sum(-1)], -2)
        counts, sequences, squares, count_squared, total_squared = (each @ where.member.T).unbind(-2)
        return cls(
            count=counts,
            sequences=sequences,
            total=where.member @ total,
            squared=squares,
            count_squared=count_squared,
            total_squared=total_squared,
            counted_total=(count[..., None] * total).sum(-2),
        )

    def merge(self, other: Sums) -> Sums:
        """Add field by field."""
        return added(self, other)

    @property
    def n(self) -> int:
        """How many vectors."""
        return int(self.count.sum())

    @property
    def mean(self) -> Tensor:
        """x̄, [d]."""
        return self.total.sum(0) / self.count.sum()

    def all_pairs(self) -> float:
        """The mean of x_i·x_j over all i ≠ j."""
        n, total = self.count.sum(), self.total.sum(0)
        return float((total @ total - self.squared.sum()) / (n * (n - 1)))

    def between(self) -> float:
        """The mean of x_i·x_j over pairs from different sequences; NaN with one sequence."""
        if self.sequences.sum() < 2:
            return float("nan")
        return float(
            _between(self.total.sum(0), self.total_squared.sum(), self.count.sum(), self.count_squared.sum())
        )

    def between_without(self) -> Tensor:
        """`between` with each group left out in turn, [G]."""
        return _between(
            self.total.sum(0) - self.total,
            self.total_squared.sum() - self.total_squared,
            self.count.sum() - self.count,
            self.count_squared.sum() - self.count_squared,
        )

    def along_without(self) -> Tensor:
        """x̄ with each group left out in turn, along the direction of x̄, [G]."""
        rest = (self.total.sum(0) - self.total) @ (self.mean / self.mean.norm())
        return rest / (self.count.sum() - self.count)

    def noise(self) -> float:
        """E‖x̄‖² were the true mean zero: the spread of the sequences' sums about their mean, over n².

        NaN with one sequence, whose spread cannot be seen.
        """
        s, n, mean = self.sequences.sum(), self.count.sum(), self.mean
        if s < 2:
            return float("nan")
        spread = (
            self.total_squared.sum() - 2 * mean @ self.counted_total + mean @ mean * self.count_squared.sum()
        )
        return float(spread.clamp_min(0) / n**2 * s / (s - 1))


def _between(total: Tensor, total_squared: Tensor, count: Tensor, count_squared: Tensor) -> Tensor:
    return ((total**2).sum(-1) - total_squared) / (count**2 - count_squared)
