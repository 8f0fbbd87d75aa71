"""Where the vectors of a batch come from: their sequences, a key for each, a place for every vector.

The key is a hash of the sequence's content and the seed. It decides the jackknife group and the half a
sequence falls into; with the position it makes a vector's place, by which samples are drawn. So all of
them are the same whatever the batch size or the order of the data, and a place is the same in every layer.
It is the same at every site a batch passes, so it is worked out once a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from isoscope.geometry.dimensions import SAMPLE, spread_over
from isoscope.kernels.cloud import Chunks

GROUPS = 32


@dataclass(frozen=True, eq=False)
class Places:
    """Where the n vectors of a batch come from.

    `sequence` [n] numbers the sequences of this batch, `key` [s] is the hash of each. Where every
    vector stands alone, `sequence` is None and there is one key a vector. `place` [n] is a hash of where
    each comes from, `token` [n] the token it stands for, where it stands for one.
    """

    sequence: Tensor | None
    key: Tensor
    place: Tensor
    token: Tensor | None
    chunks: Chunks | None
    lengths: tuple[int, ...] | None  # of sequences whose vectors stand together
    share: float = 1.0  # of the vectors, that covariances are made of

    @classmethod
    def of(
        cls,
        n: int,
        sequence: Tensor | None,
        key: Tensor,
        *,
        position: Tensor | None = None,
        token: Tensor | None = None,
        device: torch.device | str = "cpu",
        share: float = 1.0,
    ) -> Places:
        """`position` [n] tells the vectors of a sequence apart; without it they are numbered as they come."""
        key, sequence = key.cpu(), None if sequence is None else sequence.cpu()
        position = _numbered(sequence, n) if position is None else position.cpu()
        place = mix((key if sequence is None else key[sequence]) + mix(position))
        chunks = None if sequence is None else Chunks.of(sequence, len(key))
        lengths = None
        if chunks is not None and sequence is not None:
            lengths = tuple(torch.bincount(sequence, minlength=len(key)).tolist())
        return cls(
            None if sequence is None else sequence.to(device),
            key.to(device),
            place.to(device),
            None if token is None else token.to(device),
            None if chunks is None else chunks.to(torch.device(device)),
            lengths,
            share,
        )

    @cached_property
    def thinned(self) -> tuple[Tensor, Places]:
        """The rows whose hash is in the first `share` of all hashes, and their places."""
        rows = torch.nonzero(mix(self.place.cpu()) < self.share * 2.0**63).flatten()
        sequence = None if self.sequence is None else self.sequence.cpu()[rows]
        key = self.key.cpu() if self.sequence is not None else self.key.cpu()[rows]
        places = Places.of(len(rows), sequence, key, position=self.place.cpu()[rows], device=self.key.device)
        return rows.to(self.key.device), places

    @cached_property
    def group(self) -> Tensor:
        """The jackknife group of every sequence, [s]."""
        return self.key % GROUPS

    @cached_property
    def member(self) -> Tensor:
        """Which group every sequence belongs to, [G, s] of 0 and 1."""
        return (torch.arange(GROUPS, device=self.key.device)[:, None] == self.group).double()

    def part(self, parts: int) -> Tensor:
        """Which of `parts` (1 or 2) each vector falls into, [n]; chosen apart from the groups."""
        part = (self.key // GROUPS) % parts
        return part if self.sequence is None else part[self.sequence]

    def rows(self, parts: int) -> tuple[Tensor | slice, ...]:
        """The rows of each of `parts` (1 or 2)."""
        return (slice(None),) if parts == 1 else self._halves

    @cached_property
    def _halves(self) -> tuple[Tensor, ...]:
        part = self.part(2)
        return tuple(torch.nonzero(part == number).flatten() for number in (0, 1))

    def smallest(self, many: int) -> Tensor:
        """The rows with the smallest places, at most `many`, by ascending place."""
        return self._by_place[:many]

    @cached_property
    def _by_place(self) -> Tensor:
        return self.place.argsort(stable=True)

    def sampled(self, width: int) -> tuple[Tensor, Tensor, Tensor] | None:
        """A sample of each sequence's coordinates: rows, columns, and whether there are so many, [s, m]."""
        if self.lengths is None:
            return None
        if width not in self._samples:
            size = [min(SAMPLE, length * width) for length in self.lengths]
            most, starts = max(size, default=0), torch.tensor((0, *self.lengths[:-1])).cumsum(0)
            chosen = torch.zeros(len(size), most, dtype=torch.long)
            there = torch.arange(most) < torch.tensor(size)[:, None]
            for number, (length, many) in enumerate(zip(self.lengths, size, strict=True)):
                chosen[number, :many] = spread_over(length * width, many)
            rows = torch.where(there, starts[:, None] + chosen // width, 0)
            device = self.key.device
            self._samples[width] = rows.to(device), (chosen % width).to(device), there.to(device)
        return self._samples[width]

    @cached_property
    def _samples(self) -> dict[int, tuple[Tensor, Tensor, Tensor]]:
        return {}


def mix(numbers: Tensor) -> Tensor:
    """A hash of each whole number, not negative: the finaliser of splitmix64, in numbers that wrap around.

    >>> len(set(mix(torch.arange(1000)).tolist()))
    1000
    """
    x = numbers.long() - 7046029254386353131
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return (x ^ ((x >> 31) & 0x1FFFFFFFF)) & 0x7FFFFFFFFFFFFFFF


def _numbered(sequence: Tensor | None, n: int) -> Tensor:
    """The number of each vector within its sequence, in the order of the batch, [n]."""
    if sequence is None:
        return torch.zeros(n, dtype=torch.long)
    order = sequence.argsort(stable=True)
    ranked = sequence[order]
    within = torch.arange(n) - torch.searchsorted(ranked, ranked)
    return torch.empty_like(order).scatter(0, order, within)
