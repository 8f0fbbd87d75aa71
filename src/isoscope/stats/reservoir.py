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
        """Fold one batch: the vectors whose places are the smallest, those that are not kept among them."""
        chosen, place = seen.places.smallest(SIZE)
        kept = seen.kept[..., chosen]
        points = torch.where(kept[..., None], seen.points.index_select(-2, chosen), 0)
        return cls(seen.count, place.expand(kept.shape), points, kept)

    def merge(self, other: Self) -> Self:
        """The sample of both streams."""
        places, order = torch.cat([self.places, other.places], -1).sort(dim=-1, stable=True)
        order = order[..., :SIZE]
        vectors = torch.cat([self.vectors, other.vectors], -2)
        along = order[..., None].expand(*order.shape, vectors.shape[-1])
        kept = torch.cat([self.kept, other.kept], -1).gather(-1, order)
        return type(self)(self.count + other.count, places[..., :SIZE], vectors.gather(-2, along), kept)

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
