"""The record of attention rows: sums over the queries that count, by head and by group of sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from isoscope.stats.heads import Heads, group_sums, row_sums
from isoscope.stats.seen import GROUPS


@dataclass(frozen=True)
class Rows:
    """Each field [G, h], a sum over rows, unless said otherwise.

    A row that sees no key, or whose scores are not finite, is counted and left out.
    """

    sequences: Tensor  # [G] with at least one row
    count: Tensor  # rows
    entropy: Tensor
    log_visible: Tensor  # log of the number of visible keys
    several: Tensor  # rows that see two keys or more
    normalised: Tensor  # entropy / log visible, of those
    largest: Tensor
    effective: Tensor  # 1/Σp²
    variance: Tensor  # of the scores over the visible keys
    distance: Tensor
    sunk: Tensor  # rows that see the first key
    sink: Tensor  # their weight on it
    chance: Tensor  # 1/visible of those
    score: Tensor  # [h] the largest score
    unseeing: Tensor  # [h] rows that see no key
    not_finite: Tensor  # [h] rows whose scores are not finite

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch."""
        rows, counts, key = seen.rows, seen.counts, seen.key
        visible = rows.visible.double()
        usable = rows.entropy.isfinite()
        one, nothing = torch.ones_like(visible), torch.full_like(visible, torch.nan)
        log_visible = torch.where(usable, visible.log(), nothing)
        several = usable & (visible > 1)
        sunk = usable & rows.first_key.isfinite()

        def total(values: Tensor, where: Tensor = usable) -> Tensor:
            return row_sums(torch.where(where, values.double(), nothing), counts, key)

        counted = counts[:, None, :].expand_as(visible)
        scores = torch.where(counted & usable, rows.max_score.double(), -torch.inf)
        least = torch.finfo(torch.float64).min
        return cls(
            sequences=group_sums((counted & usable).any(2).any(1).double(), key),
            count=total(one),
            entropy=total(rows.entropy),
            log_visible=total(log_visible),
            several=total(one, several),
            normalised=total(rows.entropy.double() / log_visible, several),
            largest=total(rows.largest),
            effective=total(1 / rows.collision.double()),
            variance=total(rows.score_variance),
            distance=total(rows.distance),
            sunk=total(one, sunk),
            sink=total(rows.first_key, sunk),
            chance=total(1 / visible, sunk),
            score=scores.amax((0, 2)).clamp_min(least)
            if counts.numel()
            else scores.new_full((visible.shape[1],), least),
            unseeing=(counted & (visible == 0)).sum((0, 2)).double(),
            not_finite=(counted & (visible > 0) & ~usable).sum((0, 2)).double(),
        )

    def merge(self, other: Self) -> Self:
        """Add field by field; of the scores, the larger."""
        joined = {name: mine + getattr(other, name) for name, mine in vars(self).items()}
        return type(self)(**joined | {"score": torch.maximum(self.score, other.score)})

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        joined = {name: torch.cat([mine, getattr(other, name)], -1) for name, mine in vars(self).items()}
        return type(self)(**joined | {"sequences": torch.maximum(self.sequences, other.sequences)})

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 8 * 15 * GROUPS * max(1, width // 64)
