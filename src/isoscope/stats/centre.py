"""The record of where the cloud lies: sums of the vectors as they are, and of their norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.seen import GROUPS, Vectors, by_group
from isoscope.stats.sums import Sums


@dataclass(frozen=True)
class Centre:
    """Sums of vectors and norms by group, and how many vectors could not be used."""

    sums: Sums
    norms: Tensor  # [G] Σ ‖x‖
    not_finite: int

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        group = seen.key % GROUPS
        group = group if seen.sequence is None else group[seen.sequence]
        return cls(Sums.of(seen, torch.ones_like(seen.norm)), by_group(seen.norm, group), seen.not_finite)

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return type(self)(
            self.sums.merge(other.sums), self.norms + other.norms, self.not_finite + other.not_finite
        )

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one sum a group."""
        return 8 * (GROUPS + 1) * width
