"""The record of what sequences are like inside: one number a sequence, summed by group.

A sequence is never split over batches, so each is read whole the moment it is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.sums import label_sums, slices
from isoscope.stats.seen import GROUPS, Vectors, by_group


@dataclass(frozen=True)
class PerSequence:
    """For each group: how many sequences, the sum of a number over them, and of its isotropic value."""

    sequences: Tensor  # [G]
    total: Tensor  # [G]
    null: Tensor  # [G]

    @classmethod
    def of(cls, value: Tensor, null: Tensor, known: Tensor, group: Tensor) -> PerSequence:
        """Sum over the sequences where the number is known."""
        return cls(*(by_group(x * known, group) for x in (torch.ones_like(value), value, null)))

    def merge(self, other: PerSequence) -> PerSequence:
        """Add field by field."""
        return PerSequence(**{name: mine + getattr(other, name) for name, mine in vars(self).items()})


@dataclass(frozen=True)
class Within:
    """Similarity to the sequence's mean, and the residual after it is taken away."""

    n: int
    similarity: PerSequence
    residual: PerSequence

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        size, device = len(seen.key), seen.points.device
        group = seen.key % GROUPS
        label = torch.arange(size, device=device) if seen.sequence is None else seen.sequence
        zero = torch.zeros(size, dtype=torch.float64, device=device)
        count = zero.index_add(0, label, torch.ones_like(seen.norm))
        pointing = zero.index_add(0, label, (seen.norm > 0).double())
        squares = zero.index_add(0, label, seen.norm**2)
        if seen.sequence is None:  # every vector alone: nothing is inside
            nothing = PerSequence.of(zero, zero, zero, group)
            return cls(len(seen.points), nothing, nothing)
        total = label_sums(seen.points, torch.ones_like(seen.norm), label, size)
        length = total.norm(dim=1)
        cosine = torch.zeros_like(seen.norm)
        for rows, part in slices(seen.points):
            cosine[rows] = (part * total[label[rows]]).sum(1) / (seen.norm[rows] * length[label[rows]])
        cosine = torch.where(seen.norm > 0, cosine, 0.0).nan_to_num()
        similar = zero.index_add(0, label, cosine) / pointing.clamp_min(1)
        left = (1 - length**2 / (count * squares).clamp_min(1e-300)).clamp_min(0).sqrt()
        return cls(
            len(seen.points),
            PerSequence.of(
                similar, pointing.clamp_min(1).rsqrt(), ((pointing > 1) & (length > 0)).double(), group
            ),
            PerSequence.of(
                left, (1 - 1 / count.clamp_min(1)).sqrt(), ((count > 1) & (squares > 0)).double(), group
            ),
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return type(self)(
            self.n + other.n, self.similarity.merge(other.similarity), self.residual.merge(other.residual)
        )

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: a few numbers a group."""
        return 8 * 6 * GROUPS
