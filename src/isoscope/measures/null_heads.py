"""What is read of a head whose weights are random: Gaussian factors with the Frobenius norms of its own.

In closed form where there is one, else the mean over a few draws: these depend on the shape [d, e] of a head
alone, up to a power of its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from isoscope.kernels.spectra import qk_spectrum
from isoscope.stats.weights import HeadWeights


@lru_cache(maxsize=64)
def random_heads(width: int, inner: int) -> dict[str, float]:
    """The means of what is read of heads [d, e] whose factors are standard Gaussian, over a few draws."""
    random = torch.Generator().manual_seed(1_000_003 * width + inner)
    found: dict[str, list[float]] = {}
    for _ in range(min(16, max(2, 2048 // inner))):  # wide heads vary less, and cost more
        pair = (torch.randn(width, inner, dtype=torch.float64, generator=random) for _ in range(2))
        spectrum = qk_spectrum(*pair, scale=1.0)
        for name in ("variance", "variance_inside", "spectral_norm", "effective_rank"):
            found.setdefault(name, []).append(float(getattr(spectrum, name)))
    return {name: math.fsum(values) / len(values) for name, values in found.items()}


def drawn(name: str, power: int) -> Callable[[HeadWeights], Tensor]:
    """The mean over draws, for the sizes of these heads; `power` is how often the scale of W goes in."""

    def null(record: HeadWeights) -> Tensor:
        shapes = zip(record.width.tolist(), record.inner.tolist(), strict=True)
        unit = torch.tensor([random_heads(*shape)[name] for shape in shapes], dtype=torch.float64)
        return unit * (_product(record) / (record.width * record.inner)) ** power

    return null


def random_moments(record: HeadWeights) -> tuple[Tensor, Tensor, Tensor]:
    """E tr W, E tr W² and E‖W‖_F² of random heads of the same sizes, [h] each: in closed form."""
    square = _product(record) ** 2 / record.inner
    return torch.zeros_like(square), square / record.width, square


def _product(record: HeadWeights) -> Tensor:
    return record.query_size * record.key_size
