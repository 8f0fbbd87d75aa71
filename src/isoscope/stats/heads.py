"""What is found at an attention site: the rows of one batch, with the queries and keys that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.stats.seen import GROUPS


@dataclass(frozen=True, eq=False)
class Heads:
    """Rows [b, h, t], which of them count [b, t], the key [b] of every sequence.

    `query` [b, h, t, e] and `keys` [b, g, s, e] are there where the model shows them, with the positions of
    keys that count [b, s]; `unrotated` are the queries before rotary position, where there is one and they
    can be had. `mass` [b, h, t] is what the weights of a row add up to, where they are no softmax.
    """

    rows: AttentionRows
    counts: Tensor
    key: Tensor
    query: Tensor | None = None
    unrotated: Tensor | None = None
    keys: Tensor | None = None
    key_counts: Tensor | None = None
    mass: Tensor | None = None


def row_sums(values: Sequence[Tensor], where: Tensor, key: Tensor) -> Tensor:
    """Σ over the rows `where` [b, h, t] of each of `values` [b, h, t], by group of sequences, [v, G, h].

    A value that is not finite is left out.
    """
    each = torch.stack([torch.where(where & x.isfinite(), x, 0).sum(2, dtype=torch.float64) for x in values])
    return group_sums(each.transpose(0, 1), key).transpose(0, 1).contiguous()


def group_sums(each: Tensor, key: Tensor) -> Tensor:
    """The sum over the sequences of each group of `each` [b, …], [G, …]."""
    member = (torch.arange(GROUPS, device=key.device)[:, None] == key % GROUPS).double()
    flat = each.double().reshape(len(key), prod(each.shape[1:]))
    return (member @ flat).reshape(GROUPS, *each.shape[1:])
