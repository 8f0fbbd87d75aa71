"""A control without attention: every dimension mixes its last few positions with fixed weights."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from isoscope.lab.variants.base import Given, Place

REACH = 8  # positions


class Convolution(nn.Module):
    """o_t = Σ_{i<8} w_i ⊙ v_{t−i}; around t where nothing is causal."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.mix = nn.Conv1d(place.width, place.width, REACH, groups=place.width, bias=False)

    def forward(self, given: Given) -> Tensor:
        """Mix the values, [b, h, t, e]."""
        value = given.value
        if given.counts is not None:
            value = value.masked_fill(~given.counts[:, None, :, None].bool(), 0)
        b, h, t, e = value.shape
        line = value.transpose(2, 3).reshape(b, h * e, t)
        ahead = 0 if given.causal else REACH // 2
        line = self.mix(F.pad(line, (REACH - 1 - ahead, ahead)))
        return line.view(b, h, e, t).transpose(2, 3)
