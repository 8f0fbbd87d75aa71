"""The record of queries and keys: for every head the sums of its vectors, and of their directions.

Heads are kept and read side by side: theirs are the `Sums` of so many clouds, so drift and mean cosine of
queries are read as those of layers are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import nan
from typing import Self

import torch
from torch import Tensor

from isoscope.kernels.head_sums.totals import VectorTotals, at_least_single, vector_totals
from isoscope.stats.base import added
from isoscope.stats.heads import Heads, Positions
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
    joint: Tensor  # []

    @classmethod
    def of(cls, count: Tensor, squared: Tensor, norms: Tensor, total: Tensor, where: Positions) -> HeadSums:
        """From how many vectors each sequence has, Σ‖x‖², Σ‖x‖ [..., b, h] and Σx [..., b, h, e]."""
        member = where.member[:, : count.shape[-2]]
        numbers = torch.stack([count, (count > 0).double(), squared, count**2, (total**2).sum(-1), norms], -3)
        sums = (member[..., None, :, :] @ numbers).unbind(-3)
        return cls(
            count=sums[0],
            sequences=sums[1],
            total=(member @ total.flatten(-2)).view(*total.shape[:-3], GROUPS, *total.shape[-2:]),
            squared=sums[2],
            count_squared=sums[3],
            total_squared=sums[4],
            counted_total=(total * count[..., None]).sum(-3),
            norms=sums[5],
            joint=total.new_full(count.shape[:-2], where.joint),
        )

    def merge(self, other: HeadSums) -> HeadSums:
        """Add field by field."""
        return added(self, other)

    def beside_heads(self, other: HeadSums) -> HeadSums:
        """The heads of another attention of the same block, after those of this one."""
        joined = {
            name: torch.cat([getattr(self, name), getattr(other, name)], 0 if name == "counted_total" else 1)
            for name in (field.name for field in fields(self))
            if name != "joint"
        }
        return HeadSums(**joined, joint=torch.maximum(self.joint, other.joint))

    @cached_property
    def sums(self) -> Sums:
        """The heads as clouds side by side."""
        return Sums(**{field.name: getattr(self, field.name) for field in fields(Sums)})

    @property
    def mean(self) -> Tensor:
        """The mean vector of each head, [h, e]."""
        return self.total.sum(0) / self.count.sum(0).clamp_min(1)[:, None]

    def effective_count(self) -> Tensor:
        """The spread of the vectors about their mean over the variance of that mean, [h].

        That variance comes from the spread between units, as in `LeftOut.noise`; NaN with one unit.
        """
        of = self.sums.by_unit
        count, sequences, mean = self.count.sum(0), of.sequences.sum(0), self.mean
        square = (mean**2).sum(-1)
        apart = of.total_squared.sum(0) - 2 * (mean * of.counted_total).sum(-1)
        apart = (apart + square * of.count_squared.sum(0)).clamp_min(0)
        noise = torch.where(sequences > 1, apart / count**2 * sequences / (sequences - 1), nan)
        return (self.squared.sum(0) / count - square) / noise


@dataclass(frozen=True)
class Queries:
    """Queries and keys as they are, and their directions; none where they are not shown."""

    query: HeadSums
    key: HeadSums
    query_unit: HeadSums
    key_unit: HeadSums
    unrotated: HeadSums  # queries before rotary position
    unrotated_key: HeadSums

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch."""
        query, keys, key_positions, where = seen.query, seen.keys, seen.key_positions, seen.positions
        if query is None or keys is None or key_positions is None:
            none = seen.counts.new_zeros(0, seen.rows.visible.shape[1], 0, 1, dtype=torch.float64)
            turned = before = held = held_before = vector_totals(none, seen.counts[:0, :0])
        else:
            turned = vector_totals(query, seen.counts)
            before = turned if seen.unrotated is None else vector_totals(seen.unrotated, seen.counts)
            held = held_before = vector_totals(keys, key_positions.counts)
            if seen.unrotated_keys is not None:
                held_before = vector_totals(seen.unrotated_keys, key_positions.counts)

        def sums(of: VectorTotals) -> HeadSums:
            return HeadSums.of(of.count, of.squares, of.norms, of.total, where)

        def directions(of: VectorTotals) -> HeadSums:
            return HeadSums.of(of.pointing, of.pointing, of.pointing, of.unit, where)

        return cls(
            sums(turned), sums(held), directions(turned), directions(held),
            sums(turned) if before is turned else sums(before),
            sums(held) if held_before is held else sums(held_before),
        )  # fmt: skip

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return added(self, other)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        parts = [field.name for field in fields(self)]
        return type(self)(*(getattr(self, name).beside_heads(getattr(other, name)) for name in parts))

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes: six sums per group."""
        return 8 * width * 6 * (GROUPS + 1)

    @property
    def mean_query(self) -> Tensor:
        """The mean query of each head before rotary position, [h, e]."""
        return self.unrotated.mean

    @property
    def mean_key(self) -> Tensor:
        """The mean key of each key head before rotary position, [g, e]."""
        return self.unrotated_key.mean

    @property
    def behind_mean(self) -> Tensor:
        """How many independent queries would make a mean as sure as `mean_query` is, [h]."""
        return self.unrotated.effective_count()

    @property
    def shown(self) -> bool:
        """Whether there was a query to see."""
        return bool(self.query.count.sum() > 0)


@dataclass(frozen=True)
class QueryProducts:
    """`Queries` with Σ q qᵀ of each head, over the queries that count and are finite."""

    queries: Queries
    products: Tensor  # [h, e, e]

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch."""
        query = seen.query
        if query is None:
            query = seen.rows.entropy.new_zeros(*seen.rows.entropy.shape, 1)
        usable = seen.counts[:, None, :] & query.isfinite().all(-1)
        query = torch.where(usable[..., None], query, 0)
        query = query.to(at_least_single(query.dtype)) if query.is_cuda else query.double()
        return cls(Queries.of(seen), query.mT.matmul(query).sum(-4, dtype=torch.float64))

    def merge(self, other: Self) -> Self:
        """The record of both streams."""
        return added(self, other)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        products = torch.cat([self.products, other.products])
        return type(self)(self.queries.beside_heads(other.queries), products)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return Queries.size(width, parts) + 8 * width * 64
