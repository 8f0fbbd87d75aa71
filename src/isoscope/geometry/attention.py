"""Attention rows: how sharply each query attends, from the whole score matrix, in float64.

s_ij = softcap(scale·q_i·k_j) + mask + bias + key_bias is the score as it enters the softmax, p_ij its row.
Only the mask, the causal rule, the window and the lengths hide keys. What is decided here:

- A query stands at position i' = i + (s − t) when attention is causal (the last query sees the last key, as
  with a cache of earlier keys), else at i. Distances and windows are measured from there.
- The soft-cap acts on scale·q·k alone, before any mask or bias (as in Gemma 2).
- A boolean mask hides where it is False, a floating one where it is −inf or at most finfo.min/2 of its own
  dtype: models write padding as the lowest number and add their bias to it.
- A row that sees no key, or a score that is not finite, is NaN in every statistic; `visible` tells which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class AttentionRows:
    """What the rows of attention are like, every field [b, h, t]: batch, query head, query."""

    lse: Tensor  # log Σ_j exp s_ij, nats
    entropy: Tensor  # −Σ_j p_ij log p_ij, nats, in [0, log visible]
    largest: Tensor  # max_j p_ij
    collision: Tensor  # Σ_j p_ij²; its inverse is the effective number of keys
    max_score: Tensor  # max_j s_ij
    score_variance: Tensor  # population variance of s_ij over the visible keys
    first_key: Tensor  # weight of the first key that any row of this head sees; NaN where this row does not
    visible: Tensor  # number of visible keys, int32
    distance: Tensor  # Σ_j p_ij |i' − j|


def hidden_at_most(dtype: torch.dtype) -> float:
    """The value at or under which a floating mask hides a key: half the lowest finite number."""
    return torch.finfo(dtype).min / 2


def seen(mask: Tensor) -> Tensor:
    """Where a mask lets a key be seen, boolean, its shape; NaN hides nothing, so that it is found."""
    return mask if mask.dtype == torch.bool else ~(mask <= hidden_at_most(mask.dtype))


def visible_keys(
    shape: tuple[int, int, int, int],
    *,
    causal: bool = False,
    key_lengths: Tensor | None = None,
    mask: Tensor | None = None,
    window: int | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Which key every query sees, boolean [b, h, t, s]."""
    _, _, t, s = shape
    at = torch.arange(t, device=device)[:, None] + (s - t if causal else 0)
    key = torch.arange(s, device=device)[None, :]
    visible = torch.ones(shape, dtype=torch.bool, device=device)
    if causal:
        visible &= key <= at
    if window is not None:
        visible &= (at - key).abs() < window
    if key_lengths is not None:
        visible &= (key < key_lengths.to(device)[:, None])[:, None, None, :]
    return visible if mask is None else visible & seen(mask)


def row_statistics(scores: Tensor, visible: Tensor, *, offset: int = 0) -> AttentionRows:
    """The statistics of rows of `scores` [b, h, t, s] over `visible` keys; query i stands at i + offset."""
    scores = scores.double()
    count = visible.sum(-1)
    usable = (count > 0) & (scores.isfinite() | ~visible).all(-1)
    shown = torch.where(visible & usable[..., None], scores, -math.inf)
    top = torch.where(usable, shown.amax(-1), math.nan)
    lse = top + (shown - top[..., None]).exp().sum(-1).log()
    weight = (shown - lse[..., None]).exp()
    surprise = torch.where(visible, lse[..., None] - shown, 0.0)
    mean = torch.where(visible, shown, 0.0).sum(-1) / count
    centred = torch.where(visible, shown - mean[..., None], 0.0)

    return AttentionRows(
        lse=lse,
        entropy=(weight * surprise).sum(-1),
        max_score=top,
        score_variance=torch.where(usable, centred.square().sum(-1) / count, math.nan),
        visible=count.int(),
        **_of_weights(weight, visible, offset),
    )


def _of_weights(weight: Tensor, visible: Tensor, offset: int) -> dict[str, Tensor]:
    """What is read of weights [b, h, t, s] alone, by its field."""
    (*rows, t, s), device = weight.shape, weight.device
    first = visible.any(-2).int().argmax(-1)[:, :, None, None].expand(*rows, t, 1)
    gap = torch.arange(t, device=device)[:, None] + offset - torch.arange(s, device=device)
    return {
        "largest": weight.amax(-1),
        "collision": weight.square().sum(-1),
        "first_key": weight.gather(-1, first).masked_fill(~visible.gather(-1, first), math.nan).squeeze(-1),
        "distance": (weight * gap.abs()).sum(-1),
    }


def weight_rows(weights: Tensor, scores: Tensor) -> AttentionRows:
    """The statistics of attention whose `weights` are no softmax of its `scores`, both [b, h, t, s].

    A row is p = |w|/Σ|w|; `lse`, `max_score`, `score_variance` and `visible` are those of the scores, which
    are −inf where a key is hidden. What the weights add up to is not in it; a row of zeros is NaN.
    """
    visible = seen(scores)
    rows = row_statistics(scores, visible)
    usable = ~rows.lse.isnan() & (weights.isfinite() | ~visible).all(-1)
    size = torch.where(visible, weights.double().abs(), 0.0)
    weight = torch.where(usable, 1.0, math.nan)[..., None] * size / size.sum(-1, keepdim=True)
    entropy = -torch.xlogy(weight, weight).sum(-1)
    return replace(rows, entropy=entropy, **_of_weights(weight, visible, 0))


def attention_rows(
    q: Tensor,
    k: Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    key_lengths: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    window: int | None = None,
    softcap: float | None = None,
    key_bias: Tensor | None = None,
) -> AttentionRows:
    """The statistics of softmax(scale·q·kᵀ …) for q [b, h, t, e], k [b, g, s, e], h a multiple of g.

    `mask`, `bias` and `key_bias` broadcast to [b, h, t, s]; `key_lengths` [b] counts each sequence's keys;
    `scale` is 1/√e unless given.
    """
    keys = k.double().repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores = (q.shape[-1] ** -0.5 if scale is None else scale) * (q.double() @ keys.mT)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    b, h, t, s = scores.shape
    visible = visible_keys(
        (b, h, t, s), causal=causal, key_lengths=key_lengths, mask=mask, window=window, device=q.device
    )
    return row_statistics(_sum(scores, mask, bias, key_bias), visible, offset=s - t if causal else 0)


def score_rows(
    scores: Tensor,
    *,
    causal: bool = False,
    key_lengths: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    window: int | None = None,
    key_bias: Tensor | None = None,
) -> AttentionRows:
    """The statistics of softmax(scores + …) for `scores` [b, h, t, s], which may hold hidden keys itself."""
    b, h, t, s = scores.shape
    visible = seen(scores) & visible_keys(
        (b, h, t, s), causal=causal, key_lengths=key_lengths, mask=mask, window=window, device=scores.device
    )
    return row_statistics(_sum(scores, mask, bias, key_bias), visible, offset=s - t if causal else 0)


def _sum(scores: Tensor, *terms: Tensor | None) -> Tensor:
    total = scores.double()
    for term in terms:
        if term is not None and term.dtype != torch.bool:
            total = total + term.double()
    return total
