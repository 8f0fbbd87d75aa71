"""Sparse attention weights: the projection on the simplex in place of the softmax, and half-way to it."""

from __future__ import annotations

import torch
from torch import Tensor


def sparsemax(scores: Tensor) -> Tensor:
    """The point of the simplex that is nearest to each row of `scores` [..., s]; −inf stays at zero.

    p_j = max(s_j − τ, 0) (Martins & Astudillo 2016).
    """
    scores = _from_top(scores)
    ranked = scores.sort(-1, descending=True).values
    rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    seen = ranked > -torch.inf
    total = ranked.masked_fill(~seen, 0).cumsum(-1) - 1
    support = (seen & (rank * ranked > total)).sum(-1, keepdim=True)  # the largest k with k·s_(k) > Σ − 1
    threshold = total.gather(-1, support - 1) / support
    return (scores - threshold).clamp_min(0)


def entmax(scores: Tensor) -> Tensor:
    """The weights max(s/2 − τ, 0)² that add up to one, exactly, by sorting; −inf stays at zero.

    α-entmax at α = 1.5 (Peters, Niculae & Martins 2019). Among the k largest, with mean m and mean square m₂
    of s/2: τ = m − √((1 − k(m₂ − m²))/k).
    """
    half = _from_top(scores) / 2
    ranked = half.sort(-1, descending=True).values
    rank = torch.arange(1, half.shape[-1] + 1, device=half.device)
    seen = ranked > -torch.inf
    shown = ranked.masked_fill(~seen, 0)
    mean = shown.cumsum(-1) / rank
    spread = rank * (shown.square().cumsum(-1) / rank - mean.square())
    threshold = mean - ((1 - spread) / rank).clamp_min(1e-12).sqrt()  # √0 has no gradient
    support = (seen & (threshold <= ranked)).sum(-1, keepdim=True)
    return (half - threshold.gather(-1, support - 1)).clamp_min(0).square()


def _from_top(scores: Tensor) -> Tensor:
    """Scores with their largest at zero: neither map cares, and sums stay small."""
    return scores - scores.amax(-1, keepdim=True).detach()
