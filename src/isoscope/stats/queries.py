"""The record of queries and keys: for every head the sums of its vectors, and of their directions.

Heads are kept side by side and read one at a time: the sums of one head are a `Sums` as any cloud has,
so drift and mean cosine of queries are read as those of layers are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.heads import Heads, group_sums
from isoscope.stats.seen import GROUPS
from isoscope.stats.sums import Sums


@dataclass(frozen=True)
class HeadSums:
    """`Sums` of h heads at once."""

    count: Tensor  # [G, h]
    sequences: Tensor  # [G, h]
    total: Tensor  # [G, h, e]
    squared: Tensor  # [G, h]
    count_squared: Tensor  # [G, h]
    total_squared: Tensor  # [G, h]
    counted_total: Tensor  # [h, e]
    norms: Tensor  # [G, h]

    @classmethod
    def of(cls, vectors: Tensor, weight: Tensor, key: Tensor) -> HeadSums:
        """The sums of weight·x for `vectors` [b, h, t, e] and `weight` [b, h, t]; 0 leaves a vector out."""
        kept = (weight > 0).double()
        norm = torch.where(weight > 0, weight * torch.linalg.vector_norm(vectors, dim=-1), 0)
        counts, each = kept.sum(2), (weight[:, :, None] @ vectors)[:, :, 0]
        return cls(
            count=group_sums(counts, key),
            sequences=group_sums((counts > 0).double(), key),
            total=group_sums(each, key),
            squared=group_sums((norm**2).sum(2), key),
            count_squared=group_sums(counts**2, key),
            total_squared=group_sums((each**2).sum(2), key),
            counted_total=(each * counts[..., None]).sum(0),
            norms=group_sums(norm.sum(2), key),
        )

    def merge(self, other: HeadSums) -> HeadSums:
        """Add field by field."""
        return HeadSums(**{name: mine + getattr(other, name) for name, mine in vars(self).items()})

    def beside_heads(self, other: HeadSums) -> HeadSums:
        """The heads of another attention of the same block, after those of this one."""
        joined = {
            name: torch.cat([mine, getattr(other, name)], 0 if name == "counted_total" else 1)
            for name, mine in vars(self).items()
        }
        return HeadSums(**joined)

    def head(self, number: int) -> tuple[Sums, Tensor]:
        """The sums of one head, and its norms [G]."""
        fields = {name: getattr(self, name)[:, number] for name in vars(self) if name != "counted_total"}
        norms = fields.pop("norms")
        return Sums(**fields, counted_total=self.counted_total[number]), norms

    def centre(self, number: int) -> Centre:
        """One head as a cloud's `Centre`."""
        sums, norms = self.head(number)
        return Centre(sums, norms, 0)

    def directions(self, number: int) -> Directions:
        """One head as a cloud's `Directions`, where the weights were 1/‖x‖."""
        sums, _ = self.head(number)
        return Directions(sums, sums.total[0], 0)

    @property
    def mean(self) -> Tensor:
        """The mean vector of each head, [h, e]."""
        return self.total.sum(0) / self.count.sum(0).clamp_min(1)[:, None]

    def effective_count(self) -> Tensor:
        """The spread of the vectors about their mean over the variance of that mean, [h].

        That variance comes from the spread between sequences, as in `Sums.noise`; NaN with one sequence.
        """
        count, sequences, mean = self.count.sum(0), self.sequences.sum(0), self.mean
        square = (mean**2).sum(-1)
        apart = self.total_squared.sum(0) - 2 * (mean * self.counted_total).sum(-1)
        apart = (apart + square * self.count_squared.sum(0)).clamp_min(0)
        noise = torch.where(sequences > 1, apart / count**2 * sequences / (sequences - 1), nan)
        return (self.squared.sum(0) / count - square) / noise

    def mean_without(self) -> Tensor:
        """The same with each group left out in turn, [G, h, e]."""
        rest = (self.count.sum(0) - self.count).clamp_min(1)
        return (self.total.sum(0) - self.total) / rest[..., None]


@dataclass(frozen=True)
class Queries:
    """Queries and keys as they are, and their directions; QᵀQ of each head; none where they are not shown."""

    query: HeadSums
    key: HeadSums
    query_unit: HeadSums
    key_unit: HeadSums
    unrotated: HeadSums  # queries before rotary position
    products: Tensor  # [h, e, e] Σ q qᵀ

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch."""
        nothing = seen.rows.visible.new_zeros(0, seen.rows.visible.shape[1], 0, 1, dtype=torch.float64)
        query, keys = (nothing if x is None else x.double() for x in (seen.query, seen.keys))
        shown = seen.query is not None and seen.keys is not None and seen.key_counts is not None
        which = seen.key if shown else seen.key[:0]
        no_counts = seen.counts[:0, :0]
        query, own = _usable(query, seen.counts if shown else no_counts)
        keys, others = _usable(keys, seen.key_counts if shown and seen.key_counts is not None else no_counts)
        turned = HeadSums.of(query, own, which)
        before = turned
        if shown and seen.unrotated is not None:
            before = HeadSums.of(*_usable(seen.unrotated.double(), seen.counts), which)
        return cls(
            turned,
            HeadSums.of(keys, others, which),
            HeadSums.of(query, _over_norm(query, own), which),
            HeadSums.of(keys, _over_norm(keys, others), which),
            before,
            (query * own[..., None]).mT.matmul(query).sum(0),
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        sums = {name: getattr(self, name).merge(getattr(other, name)) for name in _PARTS}
        return replace(self, **sums, products=self.products + other.products)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        sums = {name: getattr(self, name).beside_heads(getattr(other, name)) for name in _PARTS}
        return replace(self, **sums, products=torch.cat([self.products, other.products]))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions: five sums a group, and the products."""
        return 8 * width * (5 * (GROUPS + 1) + 64)

    @property
    def mean_query(self) -> Tensor:
        """The mean query of each head before rotary position, [h, e]."""
        return self.unrotated.mean

    @property
    def behind_mean(self) -> Tensor:
        """How many independent queries would make a mean as sure as `mean_query` is, [h]."""
        return self.unrotated.effective_count()

    @property
    def shown(self) -> bool:
        """Whether there was a query to see."""
        return bool(self.query.count.sum() > 0)


_PARTS = ("query", "key", "query_unit", "key_unit", "unrotated")


def _usable(vectors: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors with those that are not finite made zero, and a weight [b, h, t]: 1 where one counts."""
    finite = vectors.isfinite().all(-1)
    weight = (counts[:, None, :] & finite).double()
    return torch.where(finite[..., None], vectors, 0), weight


def _over_norm(vectors: Tensor, weight: Tensor) -> Tensor:
    norm = torch.linalg.vector_norm(vectors, dim=-1)
    return torch.where(norm > 0, weight / norm, 0)
