"""Differential attention: one map of attention less another, so that what both share cancels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.lab.variants.base import Given, Place
from isoscope.models.attention.shown import mixed


class Differential(nn.Module):
    """(softmax(Q₁K₁ᵀ) − λ·softmax(Q₂K₂ᵀ)) V, each head's queries and keys cut in two halves.

    λ = e^{λq1·λk1} − e^{λq2·λk2} + λ₀ with λ₀ = .8 − .6e^{−.3(l−1)}; what comes out is normed head by
    head and multiplied by 1 − λ₀.
    """

    def __init__(self, place: Place) -> None:
        super().__init__()
        half = place.head // 2
        self.start = 0.8 - 0.6 * math.exp(-0.3 * (place.layer - 1))
        self.vectors = nn.Parameter(0.1 * torch.randn(2, 2, half))  # λq and λk of either map
        self.gain = nn.Parameter(torch.ones(place.head))
        self.first, self.second = Map(), Map()

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        query, key = (x.chunk(2, -1) for x in (given.query, given.key))
        one, scores = self.first(given, query[0], key[0])
        two, _ = self.second(given, query[1], key[1])
        weights = mixed(one - self.share().to(one) * two, scores)
        out = weights.to(given.value) @ given.value
        return F.rms_norm(out, self.gain.shape, self.gain.to(out), eps=1e-5) * (1 - self.start)

    def share(self) -> Tensor:
        """λ."""
        one, two = (self.vectors[:, 0] * self.vectors[:, 1]).sum(-1).exp().unbind()  # prod waits for a GPU
        return one - two + self.start


class Map(nn.Module):
    """One of the two: a module of its own, so that its heads are measured as heads of their own."""

    def forward(self, given: Given, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and scores, [b, h, t, t]."""
        return given.weights(query, key, lambda scores: scores.softmax(-1))
