"""The record of what attention's weights add up to, where they are no softmax: 1 there by definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.base import added
from isoscope.stats.heads import Heads, group_sums, row_sums
from isoscope.stats.seen import GROUPS


@dataclass(frozen=True)
class Mass:
    """Sums over the rows that count, see a key, and have finite scores and weights."""

    sequences: Tensor  # [G] with at least one row
    count: Tensor  # [G, h] rows
    mass: Tensor  # [G, h] Σ_j w_ij
    joint: Tensor  # [] sequences that share their unit with others

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch of attention that tells its weights."""
        if seen.mass is None:
            raise ValueError("attention that is a softmax adds up to one and has no record of it")
        rows = seen.counts[:, None] & seen.mass.isfinite() & seen.rows.lse.isfinite()
        where = seen.positions
        count, mass = row_sums((torch.ones_like(seen.mass), seen.mass), rows, where.member)
        there = group_sums(rows.any(-1).any(-1).double(), where.member)
        return cls(there, count, mass, mass.new_full((), where.joint))

    def merge(self, other: Self) -> Self:
        """Add field by field."""
        return added(self, other)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        return type(self)(
            torch.maximum(self.sequences, other.sequences),
            torch.cat([self.count, other.count], -1),
            torch.cat([self.mass, other.mass], -1),
            torch.maximum(self.joint, other.joint),
        )

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 8 * GROUPS * (1 + 2 * max(1, width // 64))
