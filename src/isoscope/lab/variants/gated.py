"""Gated attention: each head may say nothing, whatever it attends to."""

from __future__ import annotations

from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place


class Gated(nn.Module):
    """softmax attention ⊙ σ(x W_g), a gate for every dimension of every head."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.gate = nn.Linear(place.width, place.width)

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        mixed = given.softmax(given.query, given.key)
        b, h, t, e = mixed.shape
        return mixed * self.gate(given.hidden).sigmoid().view(b, t, h, e).transpose(1, 2)
