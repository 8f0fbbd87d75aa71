"""The record of the anatomy of attention: variances of the parts of scores, and rows without some of them.

Every score is split into the parts of position, key, query's position and content (`geometry.anatomy`). Their
variances over the visible keys are summed over rows; and the rows are read again without some of the parts.
The layer's input is left as it is: a local counterfactual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.attention.parts import VARIANTS, PartRows
from isoscope.stats.heads import Positions
from isoscope.stats.rows import Rows, beside, merged

DRAWS = 5  # random vectors


@dataclass(frozen=True, eq=False)
class Dissected:
    """Rows as they are, and without parts of their scores, with their positions.

    `behind` and `behind_key`, which broadcast to [b, h, t], are how many independent queries and keys their
    means are of; infinitely many keys where the mean key cancels. `left_out`: means are of other sequences.
    """

    rows: AttentionRows
    positions: Positions
    parts: PartRows
    behind: Tensor
    behind_key: Tensor
    left_out: bool

    @property
    def chance(self) -> list[Tensor]:
        """The share that every part has by the noise of the means, where queries and keys have no mean.

        A mean of n others adds 1/n of the variance to what is left of a query; one of its own takes that.
        """
        query, key = (1 / (many.double() + (not self.left_out)) for many in (self.behind, self.behind_key))
        own, its = (1 + each if self.left_out else 1 - each for each in (query, key))
        return [query * key, query * its, own * key, own * its]


@dataclass(frozen=True)
class Anatomy:
    """Five kinds of rows, and sums over the rows of which the variance of every part is known.

    Sums of statistics that `Dissected` leaves out (NaN there) are 0.
    """

    rows: Rows
    without_key: Rows
    without_position_and_key: Rows
    without_position: Rows
    content: Rows
    variance: Tensor  # [5, G, h] Σ_i Var_j of position, key, query's position, content, and the whole score
    split: Tensor  # [G, h] rows of which all are known
    chance: Tensor  # [4, G, h] Σ_i of those of the shares that noise of the means makes

    @classmethod
    def of(cls, seen: Dissected, parts: int = 2) -> Self:
        """Fold one batch."""
        where, found = seen.positions, seen.parts
        each = torch.cat([found.variances, seen.rows.score_variance[None]]).double()
        known = each.isfinite().all(0) & where.counts[:, None]
        sums = [torch.where(known, x, 0).sum(-1) for x in (*each, known.double(), *seen.chance)]
        summed = where.member @ torch.stack(sums, -3)
        variance, split, chance = torch.split_with_sizes(summed, [5, 1, 4], -3)
        rows = {name: Rows.of_rows(getattr(found, name), where) for name in VARIANTS}
        return cls(
            Rows.of_rows(seen.rows, where),
            **rows,
            variance=variance,
            split=split[..., 0, :, :],
            chance=chance,
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams, under the same means."""
        return merged(self, other)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        return beside(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 6 * Rows.size(width, parts)


@dataclass(frozen=True, eq=False)
class Controlled:
    """Rows as they are, as `Controls` has them with other scores, and without each of some random vectors."""

    rows: AttentionRows
    positions: Positions
    as_without_key: AttentionRows
    as_without_position_and_key: AttentionRows
    random: tuple[AttentionRows, ...]


@dataclass(frozen=True)
class Controls:
    """Rows whose scores are scaled to vary as little as without some parts, and random vectors taken away."""

    rows: Rows
    as_without_key: Rows
    as_without_position_and_key: Rows
    random: Tensor  # [D, G, h] Σ_i normalised entropy, of rows that see two keys, without each random vector

    @classmethod
    def of(cls, seen: Controlled, parts: int = 2) -> Self:
        """Fold one batch."""
        where = seen.positions
        random = torch.stack([Rows.of_rows(each, where).normalised for each in seen.random])
        return cls(
            rows=Rows.of_rows(seen.rows, where),
            as_without_key=Rows.of_rows(seen.as_without_key, where),
            as_without_position_and_key=Rows.of_rows(seen.as_without_position_and_key, where),
            random=random,
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams, under the same means and random vectors."""
        return merged(self, other)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        return beside(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 4 * Rows.size(width, parts)
