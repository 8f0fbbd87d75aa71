"""Queries and keys of unit size: sharpness must come from directions and one learnt scale a head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.lab.variants.base import Given, Place


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
