"""Other maps from scores to weights than the softmax: without competition, capped, sparse, with a sink."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place, visible_count
from isoscope.models.attention.shown import Weigh

CAP = 50.0


class Weighed(nn.Module):
    """Attention by a map of scores to weights in which nothing is learnt."""

    def __init__(self, weights_of: Weigh) -> None:
        super().__init__()
        self.weights_of = weights_of

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.weighed(given.query, given.key, self.weights_of)


def by(weights_of: Weigh) -> Callable[[Place], Weighed]:
    """What builds an attention by this map, wherever it stands."""
    return lambda place: Weighed(weights_of)


def sigmoid(scores: Tensor) -> Tensor:
    """σ(s − log v), v the number of keys that the query sees; zero where a key is hidden."""
    return (scores - visible_count(scores).to(scores).clamp_min(1).log()).sigmoid()


def capped(scores: Tensor) -> Tensor:
    """softmax(c·tanh(s/c)), c = 50; hidden keys stay hidden."""
    hidden = scores.isneginf()
    return (CAP * (scores.masked_fill(hidden, 0) / CAP).tanh()).masked_fill(hidden, -float("inf")).softmax(-1)


def off_by_one(scores: Tensor) -> Tensor:
    """e^s / (1 + Σ e^s)."""
    return with_sink(scores, scores.new_zeros(()))


def with_sink(scores: Tensor, logit: Tensor) -> Tensor:
    """e^s / (e^logit + Σ e^s), `logit` broadcasting to [h, t, 1]."""
    total = torch.logaddexp(scores.logsumexp(-1, keepdim=True), logit.to(scores))
    return (scores - total).exp()


class LearntSink(nn.Module):
    """p_j = e^{s_j} / (e^{c_h} + Σ e^s), one logit c_h a head, 0 at first."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(place.heads, 1, 1))

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.weighed(given.query, given.key, lambda scores: with_sink(scores, self.logit))


def sparsemax(scores: Tensor) -> Tensor:
    """max(s_j − τ, 0), the nearest point of the simplex (Martins & Astudillo 2016); −inf stays at zero."""
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
