"""Anatomy of attention scores: the parts of position, key, query position and content.

With q_i = q̄_i + q̃_i and k_j = k̄_j + k̃_j every score is exactly the sum of four products, times the scale:

- position q̄_i·k̄_j, the same for every text (and what the model adds to it: ALiBi, relative biases),
- key q̄_i·k̃_j, what all queries favour about this key,
- query position q̃_i·k̄_j, this query's own preference for places,
- content q̃_i·k̃_j, this query with this key.

q̄_i [b or 1, h, t, e] and k̄_j [b or 1, h, s, e] stand as they enter the scores: means over all data before
rotary position, turned to their places; or means at a position over other sequences. A share is the variance
of a part within rows over that of the whole score. What is the same for a whole row has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from isoscope.geometry.sharpness import largest_score, normalised_entropy

PARTS = ("position", "key", "query position", "content")
MIXED = "mixed"
EVEN = 0.1
"""Attention is even where scores deviate by less within rows (standard deviation): a threshold of ours.

Such a deviation changes a weight by a tenth. What makes it is not worth a share.
"""
ROUNDING = 1e-6  # of the largest score


def parts(
    query: Tensor,
    key: Tensor,
    query_mean: Tensor,
    key_mean: Tensor,
    scale: float,
    added: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four parts of the scores, each [b, h, t, s], of query [b, h, t, e] and key [b, h, s, e].

    `added` is what the model adds to the scores: it belongs to the position.
    """
    q, k = query_mean.double().expand(query.shape), key_mean.double().expand(key.shape)
    own, its = query.double() - q, key.double() - k
    position, by_key, by_query, content = (
        scale * one @ other.mT for one, other in ((q, k), (q, its), (own, k), (own, its))
    )
    return position if added is None else position + added.double(), by_key, by_query, content


def without(scores: Tensor, each: Sequence[Tensor], names: Sequence[str]) -> Tensor:
    """The scores [b, h, t, s] with the parts of these `names` taken away, hidden where they were."""
    taken = sum((each[PARTS.index(name)] for name in names), torch.zeros_like(scores))
    return torch.where(scores == -math.inf, -math.inf, scores - taken)


def variances(scores: Tensor, each: Sequence[Tensor], counts: Tensor) -> Tensor:
    """The mean over rows of the variance within them of every part and of the whole score, [5, h].

    `scores` [b, h, t, s] are −inf where hidden; rows that see no key or hold other infinities are left out.
    """
    total = torch.zeros(5, scores.shape[1], dtype=torch.float64)
    rows = torch.zeros(scores.shape[1], dtype=torch.float64)
    for b, i in torch.nonzero(counts).tolist():
        for head in range(scores.shape[1]):
            whole = scores[b, head, i].double()
            seen = whole != -math.inf
            held = [part[b, head, i].double()[seen] for part in each] + [whole[seen]]
            if not bool(seen.any()) or not all(bool(x.isfinite().all()) for x in held):
                continue
            total[:, head] += torch.stack([x.var(correction=0) for x in held])
            rows[head] += 1
    return total / rows


def shares(scores: Tensor, each: Sequence[Tensor], counts: Tensor) -> Tensor:
    """The share of every part, [4, h]; NaN for heads whose attention is even."""
    found = variances(scores, each, counts)
    least = ROUNDING * (1 + largest_score(scores, counts).abs())
    return torch.where(found[4] > least.clamp_min(EVEN) ** 2, found[:4] / found[4], math.nan)


def cross_term(scores: Tensor, each: Sequence[Tensor], counts: Tensor) -> Tensor:
    """1 − the sum of the shares: what parts add (above 0) or take (below) that go together."""
    return 1 - shares(scores, each, counts).sum(0)


def lead(scores: Tensor, each: Sequence[Tensor], counts: Tensor) -> Tensor:
    """The largest share minus the second, [h]."""
    largest = shares(scores, each, counts).topk(2, 0).values
    return largest[0] - largest[1]


def scaled(scores: Tensor, other: Tensor) -> Tensor:
    """Every row of scores [b, h, t, s] times the number that gives it the variance of its row in `other`.

    A change of temperature: what attention would be had its scores varied less, and for no other reason.
    """
    hidden = scores == -math.inf
    one, two = (_variance_of_rows(x.double(), hidden) for x in (scores, other))
    factor = torch.where(one > 0, (two / one).sqrt(), 1.0)[..., None]
    return torch.where(hidden, -math.inf, scores * factor)


def _variance_of_rows(scores: Tensor, hidden: Tensor) -> Tensor:
    count = (~hidden).sum(-1, keepdim=True)
    mean = torch.where(hidden, 0, scores).sum(-1, keepdim=True) / count
    return (torch.where(hidden, 0, scores - mean).square().sum(-1, keepdim=True) / count)[..., 0]


def mean_of_draws(scores: Tensor, shifts: Sequence[Tensor], counts: Tensor) -> Tensor:
    """The mean over random vectors of the normalised entropy without the scores `shifts` of each, [h]."""
    return _draws(scores, shifts, counts).mean(0)


def spread_of_draws(scores: Tensor, shifts: Sequence[Tensor], counts: Tensor) -> Tensor:
    """The standard deviation of the normalised entropy over random vectors, [h]."""
    return _draws(scores, shifts, counts).std(0)


def _draws(scores: Tensor, shifts: Sequence[Tensor], counts: Tensor) -> Tensor:
    left = (torch.where(scores == -math.inf, -math.inf, scores - shift) for shift in shifts)
    return torch.stack([normalised_entropy(each, counts) for each in left])
