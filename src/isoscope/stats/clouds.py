"""The record for pictures of attention: a sample of the queries and keys of each head.

As in `stats.reservoir`, those whose places have the smallest hashes are kept: neither the batches nor their
order matter, padding moves nothing, and in self-attention a query and the key of its position are both kept
or both left out. What is kept is what enters the scores, after rotary position. Decided here: no size is
asked of the device, so that a GPU never waits; a position that does not count is kept out by a place behind
all others. A vector that is not finite keeps its place and is left out when the record is read: one head's
overflow takes nothing from the picture of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from isoscope.stats.heads import NOWHERE, Heads, Positions

SIZE = 128  # vectors of a head


@dataclass(frozen=True, eq=False)
class Sample:
    """At most `SIZE` vectors of each head by ascending place, as they came."""

    place: Tensor  # [k, h]
    vectors: Tensor  # [k, h, e], zero where there is none
    sound: Tensor  # [k, h] 1 where there is one and it is finite

    @classmethod
    def of(cls, vectors: Tensor, positions: Positions) -> Sample:
        """Of the vectors [..., b, h, t, e] of one batch: those whose places are the smallest."""
        place, sequence, position = (each[:SIZE] for each in positions.by_place)
        vectors = vectors[..., sequence, :, position, :].movedim(0, -3)
        sound = (place < NOWHERE)[..., None] & vectors.isfinite().all(-1)
        return cls(
            place[..., None].expand_as(sound),
            torch.where(sound[..., None], vectors, 0),
            sound.to(torch.int8),
        )

    def with_others(self, other: Sample) -> Sample:
        """The sample of both streams."""
        place, order = torch.cat([self.place, other.place], -2).sort(dim=-2, stable=True)
        place, order = place[..., :SIZE, :], order[..., :SIZE, :]
        vectors = torch.cat([self.vectors, other.vectors], -3)
        sound = torch.cat([self.sound, other.sound], -2)
        along = order[..., None].expand(*order.shape, vectors.shape[-1])
        return Sample(place, vectors.gather(-3, along), sound.gather(-2, order))

    def beside(self, other: Sample) -> Sample:
        """The heads of another sample after those of this one; the shorter is filled up with nothing."""
        most = max(len(self.place), len(other.place))
        one, two = self._filled(most), other._filled(most)
        return Sample(*(torch.cat([getattr(one, name), getattr(two, name)], 1) for name in vars(one)))

    def of_head(self, head: int, most: int = SIZE) -> Tensor:
        """The vectors of one head [n, e], at most so many: those with the smallest places."""
        return self.vectors[self.sound[:, head] > 0, head][:most]

    def _filled(self, length: int) -> Sample:
        more = length - len(self.place)
        return Sample(
            functional.pad(self.place, (0, 0, 0, more), value=NOWHERE),
            functional.pad(self.vectors, (0, 0, 0, 0, 0, more)),
            functional.pad(self.sound, (0, 0, 0, more)),
        )


@dataclass(frozen=True, eq=False)
class Clouds:
    """Queries of h heads and keys of g; nothing where attention does not show them."""

    query: Sample
    key: Sample

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch."""
        if seen.query is None or seen.keys is None or seen.key_positions is None:
            nothing = seen.rows.entropy.new_zeros(0, seen.rows.entropy.shape[1], 0, 1)
            none = Sample.of(nothing, Positions(seen.counts[:0, :0], seen.key[:0]))
            return cls(none, none)
        return cls(Sample.of(seen.query, seen.positions), Sample.of(seen.keys, seen.key_positions))

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return type(self)(self.query.with_others(other.query), self.key.with_others(other.key))

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        return type(self)(self.query.beside(other.query), self.key.beside(other.key))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes of both samples, their vectors of 4 bytes a number, for heads of 64 dimensions."""
        return 2 * SIZE * (4 * width + 9 * max(1, width // 64))

    def on(self, device: str) -> Self:
        """The same record on another device."""
        query, key = (Sample(*(x.to(device) for x in vars(part).values())) for part in (self.query, self.key))
        return type(self)(query, key)

    @property
    def heads(self) -> int:
        """How many heads of queries there are."""
        return self.query.place.shape[1]

    def pair(self, head: int, most: int = SIZE) -> tuple[Tensor, Tensor]:
        """The queries [n, e] of one head and the keys [m, e] they meet; heads may share a key head."""
        shared = self.heads // self.key.place.shape[1]
        return self.query.of_head(head, most), self.key.of_head(head // shared, most)
