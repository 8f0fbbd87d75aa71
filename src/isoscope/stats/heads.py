"""What is found at an attention site: the rows of one batch, with the queries and keys that made them."""

from __future__ import annotations

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
    can be had.
    """

    rows: AttentionRows
    counts: Tensor
    key: Tensor
    query: Tensor | None = None
    unrotated: Tensor | None = None
    keys: Tensor | None = None
    key_counts: Tensor | None = None


def row_sums(values: Tensor, counts: Tensor, key: Tensor) -> Tensor:
    """Σ over the rows that count and are finite of `values` [b, h, t], by group of sequences, [G, h]."""
    used = counts[:, None, :] & values.isfinite()
    each = torch.where(used, values, 0).double().sum(2)
    return group_sums(each, key)


def group_sums(each: Tensor, key: Tensor) -> Tensor:
    """The sum over the sequences of each group of `each` [b, …], [G, …]."""
    member = torch.zeros(GROUPS, len(key), dtype=torch.float64, device=each.device)
    member[key % GROUPS, torch.arange(len(key), device=each.device)] = 1
    flat = each.double().reshape(len(key), prod(each.shape[1:]))
    return (member @ flat).reshape(GROUPS, *each.shape[1:])
