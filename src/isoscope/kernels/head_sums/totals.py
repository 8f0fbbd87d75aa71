"""What the vectors of every head add up to over each sequence: how many, their norms, Σx and Σx/‖x‖.

On a GPU one Triton kernel reads the vectors once (triton.py). Twin: the torch code below.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from isoscope.kernels.attention.inputs import pieces
from isoscope.kernels.cloud.totals import fused
from isoscope.kernels.sums import NUMBERS


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
    flat, counts = vectors.flatten(0, -4), counts.expand(*vectors.shape[:-3], -1).flatten(0, -2)
    size = max(1, prod(flat.shape[1:]))
    numbers = flat.new_zeros(4, *flat.shape[:2], dtype=torch.float64)
    sums = flat.new_zeros(*flat.shape[:2], 2, flat.shape[3], dtype=torch.float64)
    for part in pieces(len(flat), len(flat) if flat.is_cuda else max(1, NUMBERS // size)):
        points = flat[part].double()
        norm = torch.linalg.vector_norm(points, dim=-1)
        kept = counts[part, None, :] & norm.isfinite()
        if flat.is_cuda or not bool(kept.all()):  # a GPU would have to be waited for
            norm, points = torch.where(kept, norm, 0), torch.where(kept[..., None], points, 0)
        weight = torch.where(norm > 0, 1 / norm, 0)
        numbers[:, part] = torch.stack([kept.double(), (norm > 0).double(), norm, norm**2]).sum(-1)
        sums[part] = torch.stack([torch.ones_like(weight), weight], -2) @ points
    shape = vectors.shape[:-2]
    total, unit = (each.reshape(*shape, flat.shape[3]) for each in sums.unbind(2))
    count, pointing, norms, squares = (each.view(shape) for each in numbers)
    return VectorTotals(count, pointing, norms, squares, total, unit)


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """float32 where a dtype holds less."""
    return dtype if dtype == torch.float64 else torch.float32
