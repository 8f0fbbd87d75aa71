"""Queries and keys of a head: where their means lie, and what the mean query does to the scores.

`query` [b, h, t, e] and `key` [b, h, s, e] enter the scores; `counts` [b, t] and `key_counts` [b, s] are
those that count. Each function gives one number a head, [h]. A vector with NaN or Inf is left out, and so is
a row that sees no key or has such a score.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.geometry.cosine import mean_cosine_between
from isoscope.geometry.sharpness import largest_score

ROUNDING = 1e-6  # of the largest score: variation that is no more has no share


def means(vectors: Tensor, counts: Tensor) -> Tensor:
    """The mean vector of each head, [h, e]."""
    return torch.stack([head.mean(0) for head, _ in _heads(vectors, counts)])


def drift(vectors: Tensor, counts: Tensor) -> Tensor:
    """‖x̄‖ of each head."""
    return means(vectors, counts).norm(dim=1)


def relative_drift(vectors: Tensor, counts: Tensor) -> Tensor:
    """‖x̄‖/mean ‖x‖ of each head, in [0, 1]."""
    norm = torch.stack([head.norm(dim=1).mean() for head, _ in _heads(vectors, counts)])
    return drift(vectors, counts) / norm


def anisotropy(vectors: Tensor, counts: Tensor) -> Tensor:
    """The mean cosine between vectors of different sequences, of each head."""
    each = _heads(vectors, counts)
    return torch.tensor([mean_cosine_between(head, sequence) for head, sequence in each], dtype=torch.float64)


def query_key_cosine(query: Tensor, key: Tensor, counts: Tensor, key_counts: Tensor) -> Tensor:
    """The cosine of q̄ and k̄, in [−1, 1]."""
    one, other = means(query, counts), means(key, key_counts)
    return (one * other).sum(1) / one.norm(dim=1) / other.norm(dim=1)


def query_key_product(query: Tensor, key: Tensor, counts: Tensor, key_counts: Tensor) -> Tensor:
    """q̄·k̄."""
    return (means(query, counts) * means(key, key_counts)).sum(1)


def joint_direction(query: Tensor, key: Tensor, counts: Tensor, key_counts: Tensor) -> Tensor:
    """cos(q̄, v)·cos(k̄, v), v the first right-singular vector of Q as it lies, in [−1, 1].

    Its size says how far both means lie along the one direction, its sign whether on the same side.
    """
    one, other = means(query, counts), means(key, key_counts)
    along = torch.stack([torch.linalg.svd(head)[2][0] for head, _ in _heads(query, counts)])
    found = (one * along).sum(1) * (other * along).sum(1)
    return found / one.norm(dim=1) / other.norm(dim=1)


def variances(scores: Tensor, drift_scores: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The mean over rows of Var_j a_ij, of Var_j(s_ij − a_ij) and of Var_j s_ij over visible keys, each [h].

    `scores` [b, h, t, s] are −inf where hidden; `drift_scores` are those of the mean query at every row.
    """
    total = torch.zeros(3, scores.shape[1], dtype=torch.float64)
    rows = torch.zeros(scores.shape[1], dtype=torch.float64)
    for b, i in torch.nonzero(counts).tolist():
        for head in range(scores.shape[1]):
            s, a = scores[b, head, i].double(), drift_scores[b, head, i].double()
            seen = s != -math.inf
            if not bool(seen.any()) or not bool((s + a)[seen].isfinite().all()):
                continue
            for number, x in enumerate((a, s - a, s)):
                total[number, head] += float(x[seen].var(correction=0))
            rows[head] += 1
    drift, rest, whole = total / rows
    return drift, rest, whole


def drift_share(scores: Tensor, drift_scores: Tensor, counts: Tensor) -> Tensor:
    """V_d/(V_d + V_c): the share of the scores' variance within rows that the mean query makes, in [0, 1]."""
    drift, rest, _ = variances(scores, drift_scores, counts)
    return (drift / (drift + rest)).where(_vary(scores, drift + rest, counts), math.nan)


def cross_term(scores: Tensor, drift_scores: Tensor, counts: Tensor) -> Tensor:
    """1 − (V_d + V_c)/mean_i Var_j s_ij: what the two parts add or take when they go together."""
    drift, rest, whole = variances(scores, drift_scores, counts)
    return (1 - (drift + rest) / whole).where(_vary(scores, drift + rest, counts), math.nan)


def _vary(scores: Tensor, variance: Tensor, counts: Tensor) -> Tensor:
    """Whether the scores of each head vary within rows beyond rounding, [h]."""
    return variance > (ROUNDING * (1 + largest_score(scores, counts).abs())) ** 2


def _heads(vectors: Tensor, counts: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The vectors [n, e] of each head that count and are finite, and the sequence [n] of each."""
    number = torch.arange(len(counts))[:, None].expand_as(counts)[counts]
    each = vectors.double().transpose(0, 1)[:, counts]
    whole = each.isfinite().all(-1)
    return [(head[kept], number[kept]) for head, kept in zip(each, whole, strict=True)]
