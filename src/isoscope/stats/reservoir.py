"""The record for what needs the vectors themselves: a sample of them, the same places in every layer.

The vectors whose places have the smallest hashes are kept. That is a uniform sample without replacement
which depends neither on the order nor on the batches, and two samples merge into that of both streams. A
vector that is not finite keeps its place in the sample, so that the places are those of every other layer,
and is left out when the sample is read.
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

    count: Tensor  # []
    places: Tensor  # [k]
    vectors: Tensor  # [k, d]
    kept: Tensor  # [k]

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        chosen = seen.places.smallest(SIZE)
        kept = seen.kept[chosen]
        points = torch.where(kept[:, None], seen.points[chosen], 0)
        return cls(seen.count, seen.places.place[chosen], points, kept)

    def merge(self, other: Self) -> Self:
        """The sample of both streams."""
        places, vectors, kept = (
            torch.cat([getattr(self, name), getattr(other, name)]) for name in ("places", "vectors", "kept")
        )
        order = places.argsort(stable=True)[:SIZE]
        return type(self)(self.count + other.count, places[order], vectors[order], kept[order])

    @property
    def place(self) -> Tensor:
        """The places that can be read."""
        return self.places[self.kept]

    @property
    def points(self) -> Tensor:
        """The vectors that can be read."""
        return self.vectors[self.kept]

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes of the sample, its vectors of 4 bytes a number."""
        return SIZE * (4 * width + 9)
