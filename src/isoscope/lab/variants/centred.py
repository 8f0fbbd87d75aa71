"""Centred queries: the drift of the queries is taken away before it can be used."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isoscope.lab.variants.base import Given, Place, at_least_single

KEPT = 0.9  # of the running mean, a step


class CentredQueries(nn.Module):
    """s = (q − m_h)·k/√e, m_h the running mean of queries of *earlier* steps; no gradient, still in eval."""

    mean: Tensor

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(place.heads, 1, place.head))

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        mean = self.mean.clone()
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(_mean(given).to(self.mean), 1 - KEPT)
        return given.softmax(given.query - mean.to(given.query), given.key)


def _mean(given: Given) -> Tensor:
    """The mean query of every head over the positions that are there, [h, 1, e]."""
    query = at_least_single(given.query)
    if given.counts is None:
        return query.mean((0, 2)).unsqueeze(1)
    counts = given.counts[:, None, :, None].to(query)
    return ((query * counts).sum((0, 2)) / counts.sum().clamp_min(1)).unsqueeze(1)
