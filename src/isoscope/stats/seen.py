"""What is found at a site: vectors, the sequence each belongs to, and a key for each sequence.

The key is a hash of the sequence's content and the seed. It decides the jackknife group and the half a
sequence falls into, so both are the same whatever the batch size or the order of the data.
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
    vector stands alone, `sequence` is None and there is one key a vector.
    """

    points: Tensor
    norm: Tensor
    sequence: Tensor | None
    key: Tensor
    not_finite: int = 0

    @classmethod
    def see(cls, points: Tensor, sequence: Tensor | None, key: Tensor) -> Vectors:
        """Take vectors as they come; those with NaN or Inf are left out and counted."""
        if points.device.type == "mps":  # has no float64
            points = points.cpu()
        key = key.to(points.device)
        sequence = None if sequence is None else sequence.to(points.device)
        norm = norms(points)
        finite = norm.isfinite()
        bad = int((~finite).sum())
        if bad:
            points, norm = points[finite], norm[finite]
            if sequence is None:
                key = key[finite]
            else:
                sequence = sequence[finite]
        return cls(points, norm, sequence, key, bad)

    @property
    def width(self) -> int:
        """d, the number of dimensions."""
        return self.points.shape[1]

    def part(self, parts: int) -> Tensor:
        """Which of `parts` (1 or 2) each vector falls into, [n]; chosen apart from the groups."""
        part = (self.key // GROUPS) % parts
        return part if self.sequence is None else part[self.sequence]


def by_group(values: Tensor, group: Tensor) -> Tensor:
    """The sum of `values` [n] over each group, [G]."""
    return torch.zeros(GROUPS, dtype=torch.float64, device=values.device).index_add(0, group, values)
