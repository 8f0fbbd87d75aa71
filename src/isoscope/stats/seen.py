"""What is found at a site: vectors, the sequence each belongs to, and a key for each sequence.

The key is a hash of the sequence's content and the seed. It decides the jackknife group and the half a
sequence falls into; with the position it makes a vector's place, by which samples are drawn. So all of
them are the same whatever the batch size or the order of the data, and a place is the same in every layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.sums import norms

GROUPS = 32


@dataclass(frozen=True)
class Vectors:
    """Vectors that count, all finite: `points` [n, d], their `norm` [n], and where they come from.

    `sequence` [n] numbers the sequences of this batch, `key` [s] is the hash of each. Where every
    vector stands alone, `sequence` is None and there is one key a vector. `place` [n] is a hash of where
    each comes from, `token` [n] the token it stands for, where it stands for one.
    """

    points: Tensor
    norm: Tensor
    sequence: Tensor | None
    key: Tensor
    place: Tensor
    token: Tensor | None = None
    not_finite: int = 0

    @classmethod
    def see(
        cls,
        points: Tensor,
        sequence: Tensor | None,
        key: Tensor,
        *,
        position: Tensor | None = None,
        token: Tensor | None = None,
    ) -> Vectors:
        """Take vectors as they come; those with NaN or Inf are left out and counted.

        `position` [n] tells the vectors of a sequence apart; without it they are numbered as they come.
        """
        if points.device.type == "mps":  # has no float64
            points = points.cpu()
        device = points.device
        key = key.to(device)
        sequence = None if sequence is None else sequence.to(device)
        position = _numbered(sequence, len(points), device) if position is None else position.to(device)
        place = mix((key if sequence is None else key[sequence]) + mix(position))
        token = None if token is None else token.to(device)
        norm = norms(points)
        finite = norm.isfinite()
        bad = int((~finite).sum())
        if bad:
            points, norm, place = points[finite], norm[finite], place[finite]
            token = None if token is None else token[finite]
            if sequence is None:
                key = key[finite]
            else:
                sequence = sequence[finite]
        return cls(points, norm, sequence, key, place, token, bad)

    @property
    def width(self) -> int:
        """d, the number of dimensions."""
        return self.points.shape[1]

    def part(self, parts: int) -> Tensor:
        """Which of `parts` (1 or 2) each vector falls into, [n]; chosen apart from the groups."""
        part = (self.key // GROUPS) % parts
        return part if self.sequence is None else part[self.sequence]


def mix(numbers: Tensor) -> Tensor:
    """A hash of each whole number, not negative: the finaliser of splitmix64, in numbers that wrap around.

    >>> len(set(mix(torch.arange(1000)).tolist()))
    1000
    """
    x = numbers.long() - 7046029254386353131
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return (x ^ ((x >> 31) & 0x1FFFFFFFF)) & 0x7FFFFFFFFFFFFFFF


def _numbered(sequence: Tensor | None, n: int, device: torch.device) -> Tensor:
    """The number of each vector within its sequence, in the order of the batch, [n]."""
    if sequence is None:
        return torch.zeros(n, dtype=torch.long, device=device)
    order = sequence.argsort(stable=True)
    ranked = sequence[order]
    within = torch.arange(n, device=device) - torch.searchsorted(ranked, ranked)
    return torch.empty_like(order).scatter(0, order, within)


def by_group(values: Tensor, group: Tensor) -> Tensor:
    """The sum of `values` [n] over each group, [G]."""
    return torch.zeros(GROUPS, dtype=torch.float64, device=values.device).index_add(0, group, values)
