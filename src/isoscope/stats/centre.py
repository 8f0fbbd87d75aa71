"""The record of where the cloud lies: sums of the vectors as they are, and of their norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import Tensor

from isoscope.stats.base import added
from isoscope.stats.seen import GROUPS, Vectors
from isoscope.stats.sums import Sums


@dataclass(frozen=True)
class Centre:
    """Sums of vectors and norms by group, and how many vectors could not be used."""

    sums: Sums
    norms: Tensor  # [G] Σ ‖x‖
    not_finite: Tensor  # []

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        norms = seen.sums.norms
        norms = norms if seen.places.sequence is None else norms @ seen.places.member.T
        return cls(Sums.of(seen), norms, seen.not_finite)

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return added(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: one sum a group."""
        return 8 * (GROUPS + 1) * width
