"""The record of what the mean query does: rows as they are, without it, and without a random vector.

For every row the score s_ij is split into a_ij, the score of the key under the mean query turned to the row's
position, and the rest. Their variances over the visible keys are summed over rows; and the rows are read
again with a_ij taken away. The layer's input is left as it is: a local counterfactual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.geometry.sharpness import BESIDE
from isoscope.stats.heads import Heads, group_sums, row_sums
from isoscope.stats.rows import Rows


@dataclass(frozen=True, eq=False)
class Counterfact:
    """Rows as they are, without the mean query, without a random one; Var_j of its scores [b, h, t].

    `behind`, which broadcasts to [b, h, t], is how many independent queries the mean is of.
    """

    heads: Heads
    without: AttentionRows
    random: AttentionRows
    drift_variance: Tensor
    behind: Tensor


@dataclass(frozen=True)
class Counterfactual:
    """The three kinds of rows, and the two parts of the variance of the scores."""

    rows: Rows
    without: Rows
    random: Rows
    drift: Tensor  # [G, h] Σ_i Var_j a_ij
    rest: Tensor  # [G, h] Σ_i Var_j (s_ij − a_ij)
    split: Tensor  # [G, h] rows of which both are known
    chance: Tensor  # [G, h] Σ_i 1/(n_i + 1) of those, n_i independent queries behind the mean
    beside: Tensor  # [G, h] Σ_i normalised entropy over the keys but the first
    beside_without: Tensor  # [G, h] the same with the mean query taken away
    beside_count: Tensor  # [G, h] rows that see the first key and two others

    @classmethod
    def of(cls, seen: Counterfact, parts: int = 2) -> Self:
        """Fold one batch."""
        heads = seen.heads
        counts = heads.counts[:, None]
        both = heads.rows.score_variance.isfinite() & seen.drift_variance.isfinite()
        both = both & seen.without.score_variance.isfinite()
        one = torch.ones_like(seen.drift_variance)
        split = row_sums((seen.drift_variance, seen.without.score_variance, one), both & counts, heads.key)
        beside, beside_without = _beside_first(heads.rows), _beside_first(seen.without)
        known = beside.isfinite() & beside_without.isfinite()
        others = row_sums((beside, beside_without, one), known & counts, heads.key)
        counted = both & counts
        chance = torch.where(counted, 1 / (seen.behind.double() + 1), 0)  # NaN stays: it is not known then
        return cls(
            rows=Rows.of(heads),
            without=Rows.of(Heads(seen.without, heads.counts, heads.key)),
            random=Rows.of(Heads(seen.random, heads.counts, heads.key)),
            drift=split[0],
            rest=split[1],
            split=split[2],
            chance=group_sums(chance.sum(2), heads.key),
            beside=others[0],
            beside_without=others[1],
            beside_count=others[2],
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams, under one mean query."""
        joined: dict[str, Any] = {}
        for name, mine in vars(self).items():
            its = getattr(other, name)
            joined[name] = mine.merge(its) if isinstance(mine, Rows) else mine + its
        return type(self)(**joined)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        joined: dict[str, Any] = {}
        for name, mine in vars(self).items():
            its = getattr(other, name)
            joined[name] = mine.beside_heads(its) if isinstance(mine, Rows) else torch.cat([mine, its], 1)
        return type(self)(**joined)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 4 * Rows.size(width, parts)


def _beside_first(rows: AttentionRows) -> Tensor:
    """Normalised entropy over the keys but the first: ((H + p log p)/(1 − p) + log(1 − p))/log(v − 1).

    p is the weight of the first key. NaN where it is not seen, fewer than two keys are left, or less than a
    hundredth of the weight: there rounding would decide.
    """
    weight = rows.first_key.double().clamp(0, 1)
    others = 1 - weight
    left = (rows.entropy.double() + torch.xlogy(weight, weight)) / others + others.log()
    few = (rows.visible < 3) | (others < BESIDE)
    return torch.where(few, torch.nan, left / (rows.visible.double() - 1).log())
