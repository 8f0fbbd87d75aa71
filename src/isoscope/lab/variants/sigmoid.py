"""Sigmoid attention: every key is weighed for itself, without competition."""

from __future__ import annotations

from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place, visible_count


class Sigmoid(nn.Module):
    """p_j = σ(s_j − log v), v the number of keys that the query sees."""

    def __init__(self, place: Place) -> None:
        super().__init__()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.weighed(given.query, given.key, sigmoid)


def sigmoid(scores: Tensor) -> Tensor:
    """σ(s − log v); zero where a key is hidden."""
    return (scores - visible_count(scores).to(scores).clamp_min(1).log()).sigmoid()
