"""Sharpness as a knob of its own: the scores times a factor that is learnt, or that grows with the keys."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place, at_least_single


class Temperature(nn.Module):
    """s = e^{t_h} · q·k/√e, t_h learnt, 0 at first."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.logarithm = nn.Parameter(torch.zeros(place.heads, 1, 1))

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.softmax((self.logarithm.exp() * given.query).to(given.value), given.key)


class LogLength(nn.Module):
    """s = log v · q·k/√e, v the number of keys that the query sees: as sharp on long sequences as on short.

    Log 2 where it sees one, which then has all the weight anyway.
    """

    def __init__(self, place: Place) -> None:
        super().__init__()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        visible = given.visible.sum(-1, keepdim=True).clamp_min(2)
        query = at_least_single(given.query)
        return given.softmax((query * visible.to(query).log()).to(given.value), given.key)
