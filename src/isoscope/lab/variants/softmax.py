"""Softmax attention: what the others are compared to."""

from __future__ import annotations

from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place


class Softmax(nn.Module):
    """p_j = e^{s_j} / Σ e^s."""

    def __init__(self, place: Place) -> None:
        super().__init__()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.softmax(given.query, given.key)
