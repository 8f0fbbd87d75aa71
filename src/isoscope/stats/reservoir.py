"""The record for what needs the vectors themselves: a sample of them, the same places in every layer.

The vectors whose places have the smallest hashes are kept. That is a uniform sample without replacement
which depends neither on the order nor on the batches, and two samples merge into that of both streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.seen import Vectors

SIZE = 2048  # vectors


@dataclass(frozen=True, eq=False)
class Reservoir:
    """At most `SIZE` vectors by ascending place, as they came, and how many there were in all."""

    count: int
    place: Tensor  # [k]
    points: Tensor  # [k, d]

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        return cls(len(seen.points), *_smallest(seen.place, seen.points))

    def merge(self, other: Self) -> Self:
        """The sample of both streams."""
        place, points = torch.cat([self.place, other.place]), torch.cat([self.points, other.points])
        return type(self)(self.count + other.count, *_smallest(place, points))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes of the sample, its vectors of 4 bytes a number."""
        return SIZE * (4 * width + 8)


def _smallest(place: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    order = place.argsort(stable=True)[:SIZE]
    return place[order], points[order]
