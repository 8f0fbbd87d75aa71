"""The record of what the mean query does: rows as they are, without it, and without a random vector.

For every row the score s_ij is split into a_ij, the score of the key under the mean query turned to the row's
position, and the rest. Their variances over the visible keys are summed over rows; and the rows are read
again with a_ij taken away. The layer's input is left as it is: a local counterfactual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.row_totals.names import SPLIT
from isoscope.kernels.row_totals.totals import split_totals
from isoscope.stats.heads import Positions
from isoscope.stats.rows import Rows, beside, merged


@dataclass(frozen=True, eq=False)
class Counterfact:
    """Rows as they are, without the mean query and without a random one, with their positions.

    `drift_variance` [b, h, t] is the variance of the mean query's scores within each row. `behind`, which
    broadcasts to [b, h, t], is how many independent queries the mean is of.
    """

    rows: AttentionRows
    positions: Positions
    without: AttentionRows
    random: AttentionRows
    drift_variance: Tensor
    behind: Tensor

    def of_site(self, number: int) -> Counterfact:
        """One site of several that stand on an axis in front."""
        rows = (
            AttentionRows(**{name: each[number] for name, each in vars(of).items()})
            for of in (self.rows, self.without, self.random)
        )
        whole, without, random = rows
        return Counterfact(
            whole, self.positions, without, random, self.drift_variance[number], self.behind[number]
        )


@dataclass(frozen=True)
class Counterfactual:
    """The three kinds of rows, and the two parts of the variance of the scores.

    Sums of statistics that `Counterfact` leaves out (NaN there) are 0.
    """

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
        where = seen.positions
        split = split_totals(seen.rows, seen.without, seen.drift_variance, seen.behind, where.counts)
        return cls(
            rows=Rows.of_rows(seen.rows, where),
            without=Rows.of_rows(seen.without, where),
            random=Rows.of_rows(seen.random, where),
            **dict(zip(SPLIT, where.member @ split, strict=True)),
        )

    def merge(self, other: Self) -> Self:
        """The record of both streams, under one mean query."""
        return merged(self, other)

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        return beside(self, other)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 4 * Rows.size(width, parts)
