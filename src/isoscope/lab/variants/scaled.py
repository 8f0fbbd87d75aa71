"""Softmax attention, which the others are compared to; scaled queries or keys before it, a gate behind it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.lab.variants.base import Given, Place, at_least_single


class Softmax(nn.Module):
    """p_j = e^{s_j} / Σ e^s."""

    def __init__(self, place: Place) -> None:
        super().__init__()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.softmax(given.query, given.key)


class LogLength(Softmax):
    """s = log v · q·k/√e, v the number of keys that the query sees: as sharp on long sequences as short."""

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        visible = given.visible.sum(-1, keepdim=True).clamp_min(2)  # a lone key has all anyway
        query = at_least_single(given.query)
        return given.softmax((query * visible.to(query).log()).to(given.value), given.key)


class QueryKeyNorm(nn.Module):
    """s = g_h · rms(q)·rms(k)/√e, the scale g_h learnt, 1 at first."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(place.heads, 1, 1))

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        width = given.query.shape[-1:]
        query, key = self.scale * F.rms_norm(given.query, width), F.rms_norm(given.key, width)
        return given.softmax(query.to(given.value), key.to(given.value))


class Temperature(nn.Module):
    """s = e^{t_h} · q·k/√e, t_h learnt, 0 at first."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.logarithm = nn.Parameter(torch.zeros(place.heads, 1, 1))

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        return given.softmax((self.logarithm.exp() * given.query).to(given.value), given.key)


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
