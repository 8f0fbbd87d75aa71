"""Soft-capped scores: none grows beyond the cap."""

from __future__ import annotations

from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place

CAP = 50.0


class SoftCap(nn.Module):
    """p = softmax(c·tanh(s/c)), c = 50."""

    def __init__(self, place: Place) -> None:
        super().__init__()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.weighed(given.query, given.key, capped_softmax)


def capped_softmax(scores: Tensor) -> Tensor:
    """softmax(c·tanh(s/c)); hidden keys stay hidden."""
    hidden = scores.isneginf()
    return (CAP * (scores.masked_fill(hidden, 0) / CAP).tanh()).masked_fill(hidden, -float("inf")).softmax(-1)
