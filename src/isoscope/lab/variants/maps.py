"""Other maps from scores to weights than the softmax: without competition, capped, with room for none."""

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
