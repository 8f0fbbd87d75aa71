"""The record of token types: sums over the contexts of each of a sample of types.

The types whose tokens have the smallest hashes are kept: a uniform sample of those there are. A type of
the final sample is among the smallest of every part of the stream that it occurs in, so its sums are
exact, and records merge. Which types are sampled depends on the tokens alone, so it is the same at every
layer; a type none of whose vectors is finite is in the sample with a count of zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.cloud.chunks import sent
from isoscope.stats.places import TYPES, Contexts
from isoscope.stats.seen import Vectors, mix

SIZE = TYPES


@dataclass(frozen=True, eq=False)
class Types:
    """Of at most `SIZE` types, by ascending hash: how often each occurs, and sums over its contexts."""

    n: Tensor  # [] vectors that stand for a token
    token: Tensor  # [k] on the CPU
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
        where = seen.places.contexts
        n = seen.count if seen.places.token is not None else torch.zeros_like(seen.count)
        kept, norm = seen.kept[..., where.rows], seen.norm[..., where.rows]
        points = seen.points.index_select(-2, where.rows)
        return cls(n, where.token.expand(*n.shape, -1), *_summed(kept, norm, points, where))

    @property
    def present(self) -> Self:
        """The record of the types that have a vector."""
        rows = torch.nonzero(self.count > 0).flatten()
        if len(rows) == len(self.count):
            return self
        return type(self)(self.n, self.token[rows.cpu()], *(getattr(self, name)[rows] for name in SUMS))

    @property
    def key(self) -> Tensor:
        """A hash of each type, where its sums are, [k]."""
        return mix(self.token).to(self.count.device)

    def merge(self, other: Self) -> Self:
        """The record of both streams: sums of one type add up, the smallest hashes stay."""
        axis = self.token.dim() - 1
        mine, its = (each.token[0] if axis else each.token for each in (self, other))
        token, label = torch.unique(torch.cat([mine, its]), return_inverse=True)
        kept = mix(token).argsort()[:SIZE]
        place = torch.full_like(token, -1).scatter(0, kept, torch.arange(len(kept)))[label]
        parts = [
            (record, sent(torch.nonzero(at >= 0).flatten(), self.n.device), sent(at[at >= 0], self.n.device))
            for record, at in zip(
                (self, other), torch.split_with_sizes(place, [len(mine), len(its)]), strict=True
            )
        ]

        def joined(name: str) -> Tensor:
            held = getattr(self, name)
            out = held.new_zeros(*held.shape[:axis], len(kept), *held.shape[axis + 1 :])
            for record, rows, at in parts:
                out.index_add_(axis, at, getattr(record, name).index_select(axis, rows))
            return out

        sampled = token[kept].expand(*self.token.shape[:axis], -1)
        return type(self)(self.n + other.n, sampled, *map(joined, SUMS))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: two vectors and six numbers a type."""
        return 8 * SIZE * (2 * width + 6)


SUMS = ("count", "total", "norm", "pointing", "unit", "pointing_squared", "unit_squared")


def _summed(kept: Tensor, norm: Tensor, points: Tensor, where: Contexts) -> tuple[Tensor, ...]:
    """The `SUMS` of the m vectors [..., m, d] that stand for a sampled type."""
    points = torch.where(kept[..., None], points, 0).double()
    pointing = (norm > 0).double()
    unit = points * torch.where(norm > 0, 1 / norm, 0)[..., None]

    def sums(values: Tensor, of: Tensor, labels: int) -> Tensor:
        shape = *values.shape[:-2], labels, values.shape[-1]
        return values.new_zeros(shape).index_add_(values.dim() - 2, of, values)

    types, pairs = len(where.token), len(where.type_of_pair)
    together, pointing_together = sums(unit, where.pair, pairs), sums(pointing[..., None], where.pair, pairs)
    squares = torch.cat([pointing_together**2, (together**2).sum(-1, keepdim=True)], -1)
    numbers = sums(torch.stack([kept.double(), norm, pointing], -1), where.type, types)
    count, length, directed = numbers.unbind(-1)
    pointing_squared, unit_squared = sums(squares, where.type_of_pair, types).unbind(-1)
    return (
        count, sums(points, where.type, types), length, directed,
        sums(together, where.type_of_pair, types), pointing_squared, unit_squared,
    )  # fmt: skip
