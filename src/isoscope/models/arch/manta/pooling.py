"""How MANTa turns bytes into vectors of blocks, without ever cutting: every byte belongs a little to each.

The block of byte s is a sum of Bernoulli draws, one for every byte up to s: its mean is μ_s = Σ p, its
variance σ_s² = Σ p(1−p). The byte's share in block B is softmax_B(−(μ_s − B)²/2σ_s), with σ as the authors
have it. A block's vector is the largest over s of the convolution of shares ⊙ bytes, or their mean.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from isoscope.models.arch.configs import MantaConfig
from isoscope.models.arch.highway import Highway


def shares(frontiers: Tensor, regularised: float) -> Tensor:
    """How much of each byte is in each block, [b, B, s], of the probabilities [b, s] that a block begins.

    There are as many blocks as the mean and three standard deviations reach, at most one a byte.
    """
    begins = frontiers.clone()
    begins[:, 0] = 0  # the first byte begins block 0
    mean = begins.cumsum(-1)
    least = max(regularised, 5 * torch.finfo(frontiers.dtype).resolution)
    deviation = ((begins * (1 - begins)).cumsum(-1) + least).sqrt()
    count = min(frontiers.shape[1], int((mean + 3 * deviation).max()) + 1)
    blocks = torch.arange(count, device=frontiers.device)[None, :, None]
    return (-((mean[:, None] - blocks) ** 2) / (2 * deviation[:, None])).softmax(1)


class _Features(nn.Module):
    """A kernel over bytes, kept apart by place: [1, 1, k, c] for each channel alone, or [d, c, k]."""

    def __init__(self, width: int, channels: int, kernel: int, alone: bool) -> None:
        super().__init__()
        shape = (1, 1, kernel, channels) if alone else (width, channels, kernel)
        self.weight = nn.Parameter(
            torch.empty(*shape).normal_(std=(kernel * (1 if alone else width)) ** -0.5)
        )
        self.kernel, self.alone = kernel, alone

    def forward(self, embedded: Tensor, share: Tensor) -> Tensor:
        """Convolve share [b, B, s] ⊙ bytes [b, s, d]: [b, B, s, c]; outside the text is zero."""
        before = (self.kernel - 1) // 2
        after = self.kernel - 1 - before
        total = embedded.new_zeros(())
        for place in range(self.kernel):
            kernel = self.weight[0, 0, place] if self.alone else self.weight[..., place]
            made = embedded * kernel if self.alone else embedded @ kernel
            ahead = place - before + (after - before)  # one further on for an even kernel, as the authors do
            shared = share[..., None] * made[:, None]
            padded = functional.pad(shared, (0, 0, max(-ahead, 0), max(ahead, 0)))  # zero beyond the ends
            total = total + padded[:, :, max(ahead, 0) :][:, :, : shared.shape[2]]
        return total


class BlockPooling(nn.Module):
    """From bytes [b, s, d] and where blocks begin [b, s] to the vectors of blocks, [b, B, d_model]."""

    def __init__(self, config: MantaConfig) -> None:
        super().__init__()
        width, alone = config.byte_embedding_dim, config.pooling_depthwise_convolution
        asked = config.pooling_kernel_size
        kernels = [(asked, width)] if isinstance(asked, int) else asked  # bytes wide, channels
        channels = sum(number for _, number in kernels)
        self.mean, self.longest = config.pooling_mean_pool, config.max_length_encoder_decoder
        self.regularised = config.pooling_variance_regularization
        self.highway = Highway(channels, config.pooling_n_highway_layers)
        self.out_projection = nn.Linear(channels, config.d_model)
        self.conv_layers = nn.Sequential(*(_Features(width, c, k, alone) for k, c in kernels))

    def forward(self, frontiers: Tensor, embedded: Tensor) -> Tensor:
        """The vectors of at most `longest` blocks."""
        share = shares(frontiers, self.regularised)
        if self.mean:
            share = share / share.sum(-1, keepdim=True).clamp(min=1)
        share = share[:, : self.longest]
        found = [layer(embedded, share) for layer in self.conv_layers]
        pooled = torch.cat([each.sum(2) if self.mean else each.amax(2) for each in found], dim=-1)
        vectors: Tensor = self.out_projection(self.highway(pooled))
        return vectors
