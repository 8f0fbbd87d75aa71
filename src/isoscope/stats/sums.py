"""Sums of vectors by group of sequences, and the two readings that need no pair to be formed.

Both the mean cosine and the squared drift are means of inner products over pairs. Over all pairs it is (‖Σx‖²
− Σ‖x‖²)/(n(n−1)); over pairs from different sequences, which is unbiased when vectors of one sequence depend
on each other, (‖ΣX_s‖² − Σ‖X_s‖²)/(n² − Σn_s²), X_s the sum over sequence s. Where sequences share a unit,
such as a document, pairs are from different groups of units, X_g in place of X_s: a unit may be spread over
batches, and its sum is not kept. The sums of several clouds may stand side by side, an axis more after the
groups: they are read all at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoscope.stats.base import added
from isoscope.stats.intervals import Array, Groups, array, few, have_enough, left, product, quiet
from isoscope.stats.seen import GROUPS, Places, Vectors


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
    joint: Tensor  # [] sequences that share their unit with others

    @classmethod
    def of(cls, seen: Vectors) -> Sums:
        """The sums of the vectors as they are."""
        return cls._of(seen.places, seen.sums.count, seen.sums.squares, seen.sums.total)

    @classmethod
    def of_directions(cls, seen: Vectors) -> Sums:
        """The sums of û = x/‖x‖; vectors of norm zero have none."""
        return cls._of(seen.places, seen.sums.pointing, seen.sums.pointing, seen.sums.unit)

    @classmethod
    def _of(cls, where: Places, count: Tensor, squared: Tensor, total: Tensor) -> Sums:
        """From how many there are of each label, Σ‖x‖² and Σx."""
        joint = total.new_full(count.shape[:-1], where.joint)
        if where.sequence is None:  # labels are groups already, and every vector is a sequence
            return cls(count, count, total, squared, count, squared, total.sum(-2), joint)
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
            joint=joint,
        )

    @classmethod
    def of_units(cls, vectors: Tensor, key: Tensor) -> Sums:
        """The sums of vectors [n, d] of which each stands alone, by the group of its key [n]."""
        member = (torch.arange(GROUPS, device=key.device)[:, None] == key % GROUPS).double()
        vectors = vectors.double()
        total, count, squared = member @ vectors, member.sum(1), member @ (vectors**2).sum(1)
        return cls(count, count, total, squared, count, squared, total.sum(0), total.new_zeros(()))

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
        return self.total.sum(0) / self.count.sum(0)[..., None]

    @property
    def by_unit(self) -> Sums:
        """The sums with groups in place of sequences where some share a unit."""
        if not self.joint > 0:
            return self
        count, total = self.count, self.total
        counted = (count[..., None] * total).sum(0)
        return Sums(
            count,
            (count > 0).double(),
            total,
            self.squared,
            count**2,
            (total**2).sum(-1),
            counted,
            self.joint,
        )

    @cached_property
    def left_out(self) -> LeftOut:
        """What readings take from the sums."""
        return LeftOut.of(self.by_unit)


@dataclass(frozen=True)
class LeftOut:
    """What is read off the sums of m clouds, over all groups and then with each left out in turn: [1 + G, m].

    Sums of one cloud have no axis m. Several measures ask for the same, so a record keeps it: it is small.
    """

    n: Array  # [m] vectors
    enough: NDArray[np.bool_]  # [m] whether there are units enough for an interval
    few: str  # what is said where there are not
    groups: Groups
    count: Array  # [1 + G, m]
    length: Array  # [m] ‖x̄‖
    along: Array  # [1 + G, m] x̄ along its own direction; NaN where it is 0
    all_pairs: Array  # [m] the mean of x_i·x_j over all i ≠ j
    between: Array  # [1 + G, m] the same over pairs from different sequences; NaN with one sequence
    noise: Array  # [m] E‖x̄‖² were the true mean zero

    @classmethod
    @quiet
    def of(cls, sums: Sums) -> LeftOut:
        """Read the sums.

        The noise is the spread of the units' sums about their mean, over n²; NaN with one unit, whose spread
        cannot be seen.
        """
        sequences, count, total = array(sums.sequences), left(sums.count), left(sums.total)
        count_squared, total_squared = left(sums.count_squared), left(sums.total_squared)
        n, s, size = count[0], sequences.sum(0), product(total, total)
        several = np.where(s < 2, np.nan, 1.0)
        mean = total[0] / n[..., None]
        spread = total_squared[0] - 2 * (mean * array(sums.counted_total)).sum(-1)
        spread = np.maximum(spread + (mean**2).sum(-1) * count_squared[0], 0)
        return cls(
            n=n,
            enough=have_enough(sequences, sums.joint),
            few=few(sums.joint),
            groups=Groups.of(array(sums.count)),
            count=count,
            length=np.sqrt(size[0]) / n,
            along=product(total, total[0]) / np.sqrt(size[0]) / count,
            all_pairs=(size[0] - array(sums.squared).sum(0)) / (n * (n - 1)),
            between=(size - total_squared) / (count**2 - count_squared) * several,
            noise=spread / n**2 * s / (s - 1) * several,
        )
