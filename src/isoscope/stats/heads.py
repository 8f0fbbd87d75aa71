"""What is found at an attention site: the rows of one batch, with the queries and keys that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.stats.seen import GROUPS, mix

NOWHERE = 2**63 - 1  # the place of a position that does not count


@dataclass(frozen=True, eq=False)
class Positions:
    """Which positions count [b, t], and the key [b] of every sequence: the same for all layers of a batch.

    `units` [b] are the hashes of what the sequences were cut from, of which `joint` share theirs with others;
    None where every sequence stands alone.
    """

    counts: Tensor
    key: Tensor
    units: Tensor | None = None
    joint: int = 0

    @property
    def unit(self) -> Tensor:
        """The hash of the unit of every sequence, [b]."""
        return self.key if self.units is None else self.units

    @cached_property
    def member(self) -> Tensor:
        """Which group every sequence belongs to, [G, b] of 0 and 1."""
        return (torch.arange(GROUPS, device=self.unit.device)[:, None] == self.unit % GROUPS).double()

    @cached_property
    def by_place(self) -> tuple[Tensor, Tensor, Tensor]:
        """Places in ascending order, those of positions that do not count last; their sequence and position.

        Positions are numbered as the vectors of a layer are, among those that count.
        """
        place = mix(self.key[:, None] + mix(self.counts.cumsum(1)))
        place, chosen = torch.where(self.counts, place, NOWHERE).flatten().sort(stable=True)
        length = max(self.counts.shape[1], 1)
        return place, chosen // length, chosen % length


@dataclass(frozen=True, eq=False)
class Heads:
    """Rows [b, h, t] with their positions; those of k sites, of the same positions, have an axis in front.

    `query` [b, h, t, e] and `keys` [b, g, s, e] are there where the model shows them, with the positions of
    keys; `unrotated` and `unrotated_keys` are before rotary position, where there is one and they can be had.
    `mass` [b, h, t] is what the weights of a row add up to, where they are no softmax.
    """

    rows: AttentionRows
    positions: Positions
    query: Tensor | None = None
    unrotated: Tensor | None = None
    keys: Tensor | None = None
    key_positions: Positions | None = None
    mass: Tensor | None = None
    unrotated_keys: Tensor | None = None

    @property
    def counts(self) -> Tensor:
        """Which rows count, [b, t]."""
        return self.positions.counts

    @property
    def key(self) -> Tensor:
        """The key of every sequence, [b]."""
        return self.positions.key


def row_sums(values: Sequence[Tensor], where: Tensor, member: Tensor) -> Tensor:
    """Σ over the rows `where` [b, h, t] of each of `values` [b, h, t], by group of sequences, [v, G, h].

    A value that is not finite is left out.
    """
    each = torch.stack([torch.where(where & x.isfinite(), x, 0).sum(2, dtype=torch.float64) for x in values])
    return group_sums(each.transpose(0, 1), member).transpose(0, 1).contiguous()


def group_sums(each: Tensor, member: Tensor) -> Tensor:
    """The sum over the sequences of each group of `each` [b, …], [G, …]."""
    flat = each.double().reshape(member.shape[-1], prod(each.shape[1:]))
    return (member @ flat).reshape(GROUPS, *each.shape[1:])
