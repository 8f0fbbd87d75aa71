"""The record of token types: sums over the contexts of each of a sample of types.

The types whose tokens have the smallest hashes are kept: a uniform sample of those there are. A type of
the final sample is among the smallest of every part of the stream that it occurs in, so its sums are
exact, and records merge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.directions import unit_weight
from isoscope.stats.seen import Vectors, mix

SIZE = 1024  # types


@dataclass(frozen=True, eq=False)
class Types:
    """Of at most `SIZE` types, by ascending hash: how often each occurs, and sums over its contexts."""

    n: Tensor  # [] vectors that stand for a token
    token: Tensor  # [k]
    count: Tensor  # [k] vectors
    total: Tensor  # [k, d] Σ x
    norm: Tensor  # [k] Σ ‖x‖
    pointing: Tensor  # [k] vectors that are not zero
    unit: Tensor  # [k, d] Σ û
    pointing_squared: Tensor  # [k] Σ_s n_s², sequences s
    unit_squared: Tensor  # [k] Σ_s ‖Σû over s‖²

    @classmethod
    def of(cls, seen: Vectors, parts: int = 2) -> Self:
        """Fold one batch."""
        if seen.token is None or not bool(seen.kept.any()):
            return cls(seen.count * 0, *_nothing(seen.points))
        token, label = torch.unique(seen.token, return_inverse=True)
        unknown = int(token[0] < 0)  # stands first: the vectors that are not kept
        token, label = token[unknown:], label - unknown
        kept = mix(token).argsort()[:SIZE]
        number = torch.full_like(token, -1).scatter(0, kept, torch.arange(len(kept), device=token.device))
        rows = torch.nonzero((label >= 0) & (number[label] >= 0)).flatten()
        mine = number[label[rows]]
        sequence = rows if seen.sequence is None else seen.sequence[rows]
        base = max(len(seen.points), len(seen.key))
        pair, place = torch.unique(mine * base + sequence, return_inverse=True)
        owner = pair // max(base, 1)
        points, weight = seen.points[rows].double(), unit_weight(seen)[rows]
        pointing = (weight > 0).double()

        def sums(values: Tensor, of: Tensor, labels: int) -> Tensor:
            return values.new_zeros(labels, *values.shape[1:]).index_add_(0, of, values)

        together = sums(points * weight[:, None], place, len(pair))
        pairs = sums(pointing, place, len(pair))
        k = len(kept)
        return cls(
            seen.count,
            token[kept],
            sums(torch.ones_like(weight), mine, k),
            sums(points, mine, k),
            sums(seen.norm[rows], mine, k),
            sums(pointing, mine, k),
            sums(together, owner, k),
            sums(pairs**2, owner, k),
            sums((together**2).sum(1), owner, k),
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams: sums of one type add up, the smallest hashes stay."""
        token, label = torch.unique(torch.cat([self.token, other.token]), return_inverse=True)
        kept = mix(token).argsort()[:SIZE]

        def joined(name: str) -> Tensor:
            both = torch.cat([getattr(self, name), getattr(other, name)])
            return both.new_zeros(len(token), *both.shape[1:]).index_add_(0, label, both)[kept]

        return type(self)(self.n + other.n, token[kept], *map(joined, SUMS))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: two vectors and six numbers a type."""
        return 8 * SIZE * (2 * width + 6)


SUMS = ("count", "total", "norm", "pointing", "unit", "pointing_squared", "unit_squared")


def _nothing(points: Tensor) -> tuple[Tensor, ...]:
    """The fields of no type."""
    one = points.new_zeros(0, dtype=torch.float64)
    vectors = points.new_zeros(0, points.shape[1], dtype=torch.float64)
    return one.long(), one, vectors, one, one, vectors, one, one
