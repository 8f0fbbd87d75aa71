"""The record of attention rows: sums over the queries that count, by head and by group of sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.row_totals.names import LOWEST, TOTALS
from isoscope.kernels.row_totals.totals import row_totals
from isoscope.stats.base import added
from isoscope.stats.heads import Heads, Positions
from isoscope.stats.seen import GROUPS

_OF_DATA = ("sequences", "joint")  # what is not of single heads
R = TypeVar("R")


@dataclass(frozen=True)
class Rows:
    """Each field [G, h], a sum over rows, unless said otherwise. `joint` sequences share their unit.

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
    joint: Tensor  # []

    @classmethod
    def of(cls, seen: Heads, parts: int = 2) -> Self:
        """Fold one batch."""
        return cls.of_rows(seen.rows, seen.positions)

    @classmethod
    def of_rows(cls, rows: AttentionRows, where: Positions) -> Self:
        """Fold the rows of one batch."""
        each, score = row_totals(rows, where.counts)
        member = where.member
        sums = dict(zip(TOTALS, member @ each, strict=True))
        lost = {name: sums.pop(name).sum(-2) for name in ("unseeing", "not_finite")}
        there = (each[0] > 0).any(-1).double()
        empty = torch.full_like(sums["count"][..., 0, :], LOWEST)
        highest = score.amax(-2) if score.shape[-2] else empty
        joint = there.new_full(there.shape[:-1], where.joint)
        return cls(sequences=there @ member.T, score=highest, joint=joint, **sums, **lost)

    def merge(self, other: Self) -> Self:
        """Add field by field; of the scores, the larger."""
        return replace(added(self, other), score=torch.maximum(self.score, other.score))

    def beside_heads(self, other: Self) -> Self:
        """The heads of another attention of the same block, after those of this one."""
        of_data = {name: torch.maximum(getattr(self, name), getattr(other, name)) for name in _OF_DATA}
        joined = {
            name: torch.cat([mine, getattr(other, name)], -1)
            for name, mine in vars(self).items()
            if name not in _OF_DATA
        }
        return type(self)(**joined, **of_data)

    @staticmethod
    def size(width: int, parts: int) -> int:
        """Bytes, for heads of 64 dimensions."""
        return 8 * 15 * GROUPS * max(1, width // 64)


def merged(one: R, other: R) -> R:
    """Two records of `Rows` and sums as one."""
    return _field_by_field(one, other, Rows.merge, torch.add)


def beside(one: R, other: R) -> R:
    """The heads of two records of `Rows` and sums, side by side."""
    return _field_by_field(one, other, Rows.beside_heads, lambda mine, its: torch.cat([mine, its], -1))


def _field_by_field(
    one: R, other: R, of_rows: Callable[[Rows, Rows], Rows], of_sums: Callable[[Tensor, Tensor], Tensor]
) -> R:
    joined: dict[str, Any] = {}
    for name, mine in vars(one).items():
        its = getattr(other, name)
        joined[name] = of_rows(mine, its) if isinstance(mine, Rows) else of_sums(mine, its)
    return type(one)(**joined)
