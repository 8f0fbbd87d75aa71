"""The record of what sequences are like inside: one number a sequence, summed by group.

A sequence is never split over batches, so each is read whole the moment it is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.base import added
from isoscope.stats.seen import GROUPS, Places, Vectors


@dataclass(frozen=True)
class PerSequence:
    """For each group: how many sequences, the sum of a number over them, and of its isotropic value."""

    sequences: Tensor  # [G]
    total: Tensor  # [G]
    null: Tensor  # [G]
    joint: Tensor  # [] sequences that share their unit with others

    @classmethod
    def of(cls, value: Tensor, null: Tensor, known: Tensor, where: Places) -> PerSequence:
        """Sum over the sequences where the number is known."""
        each = torch.stack([known, value * known, null * known], -2)
        sequences, total, none = (each @ where.member.T).unbind(-2)
        return cls(sequences, total, none, value.new_full(value.shape[:-1], where.joint))

    def merge(self, other: PerSequence) -> PerSequence:
        """Add field by field."""
        return added(self, other)


@dataclass(frozen=True)
class Within:
    """Similarity to the sequence's mean, and the residual after it is taken away."""

    n: Tensor  # [] vectors
    similarity: PerSequence
    residual: PerSequence

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch. The mean of cos(x, X_s) over a sequence is X_s·Σû over ‖X_s‖ and their number."""
        where, found = seen.places, seen.sums
        if where.sequence is None:  # every vector alone: nothing is inside
            none = torch.zeros_like(found.count)
            nothing = PerSequence(none, none, none, none.sum(-1))
            return cls(found.count.sum(-1), nothing, nothing)
        count, pointing, squares, total = found.count, found.pointing, found.squares, found.total
        length = total.norm(dim=-1)
        similar = (found.unit * total).sum(-1) / (length * pointing)
        left = (found.inner / squares.clamp_min(1e-300)).sqrt()
        return cls(
            count.sum(-1),
            PerSequence.of(
                similar.nan_to_num(),
                pointing.clamp_min(1).rsqrt(),
                ((pointing > 1) & (length > 0)).double(),
                where,
            ),
            PerSequence.of(
                left, (1 - 1 / count.clamp_min(1)).sqrt(), ((count > 1) & (squares > 0)).double(), where
            ),
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return added(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: a few numbers a group."""
        return 8 * 6 * GROUPS
