"""What the vectors of every head add up to over each sequence: how many, their norms, Σx and Σx/‖x‖.

On a GPU one Triton kernel reads the vectors once (triton.py). Twin: the torch code below.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.cloud.totals import fused


@dataclass(frozen=True, eq=False)
class VectorTotals:
    """Sums over the vectors of a sequence that count and are finite, in float64."""

    count: Tensor  # [b, h] vectors
    pointing: Tensor  # [b, h] vectors whose norm is not zero
    norms: Tensor  # [b, h] Σ ‖x‖
    squares: Tensor  # [b, h] Σ ‖x‖²
    total: Tensor  # [b, h, e] Σ x
    unit: Tensor  # [b, h, e] Σ x/‖x‖


def vector_totals(vectors: Tensor, counts: Tensor) -> VectorTotals:
    """Sum `vectors` [b, h, t, e] over the positions that count [b, t].

    Vectors and sums may have an axis of sites before b.
    """
    if vectors.numel() and fused(vectors):
        from isoscope.kernels.head_sums.triton import fused_totals

        return VectorTotals(*fused_totals(vectors, counts))
    norm = torch.linalg.vector_norm(vectors, dim=-1, dtype=torch.float64)
    kept = counts[:, None, :] & norm.isfinite()
    if vectors.is_cuda or not bool(kept.all()):  # a GPU would have to be waited for
        norm, vectors = torch.where(kept, norm, 0), torch.where(kept[..., None], vectors, 0)
    weight = torch.where(norm > 0, 1 / norm, 0)[..., None].to(at_least_single(vectors.dtype))
    return VectorTotals(
        count=kept.sum(-1, dtype=torch.float64),
        pointing=(norm > 0).sum(-1, dtype=torch.float64),
        norms=norm.sum(-1),
        squares=(norm**2).sum(-1),
        total=vectors.sum(-2, dtype=torch.float64),
        unit=(vectors * weight).sum(-2, dtype=torch.float64),
    )


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """float32 where a dtype holds less."""
    return dtype if dtype == torch.float64 else torch.float32
