"""Attention that tells what it does: for maps from scores to weights that are no softmax.

The tap sees softmax and `F.scaled_dot_product_attention` by itself. A module that weighs its keys in another
way calls `weigh` and is measured as it is; whoever does not look pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

Weigh = Callable[[Tensor], Tensor]
"""From scores [b, h, t, s], −inf where a key is hidden, to weights; they need not add up to one."""


def weigh(query: Tensor, key: Tensor, scores: Tensor, scale: float, weights_of: Weigh) -> Tensor:
    """The weights [b, h, t, s] of scores that are scale · query keyᵀ, −inf where a key is hidden.

    `query` [b, h, t, e] and `key` [b, h, s, e] are told for their drift: with other queries, other weights.

    >>> import torch
    >>> one = torch.ones(1, 1, 2, 1)
    >>> weigh(one, one, torch.tensor([[[[1.0, -torch.inf], [1.0, 1.0]]]]), 1.0, torch.sigmoid)[0, 0, 0]
    tensor([0.7311, 0.0000])
    """
    given = (query, key, scores)
    if has_torch_function(given):
        return handle_torch_function(weigh, given, query, key, scores, scale, weights_of)
    return weights_of(scores)


def mixed(weights: Tensor, scores: Tensor) -> Tensor:
    """The weights as they are: a mixture of maps, such as the difference of two, that was weighed before."""
    given = (weights, scores)
    if has_torch_function(given):
        return handle_torch_function(mixed, given, weights, scores)
    return weights
