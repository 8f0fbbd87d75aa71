"""Room to attend to nothing: a denominator with one term more than there are keys."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place


class OffByOne(nn.Module):
    """p_j = e^{s_j} / (1 + Σ e^s)."""

    def __init__(self, place: Place) -> None:
        super().__init__()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.weighed(given.query, given.key, lambda scores: with_sink(scores, scores.new_zeros(())))


class LearntSink(nn.Module):
    """p_j = e^{s_j} / (e^{c_h} + Σ e^s), one logit c_h a head, 0 at first."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(place.heads, 1, 1))

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.weighed(given.query, given.key, lambda scores: with_sink(scores, self.logit))


def with_sink(scores: Tensor, logit: Tensor) -> Tensor:
    """e^s / (e^logit + Σ e^s), `logit` broadcasting to [h, t, 1].

    >>> with_sink(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1)).sum().item()
    0.75
    """
    total = torch.logaddexp(scores.logsumexp(-1, keepdim=True), logit.to(scores))
    return (scores - total).exp()
