"""The scatter of a cloud about a point, Σ w²(x−m)(x−m)ᵀ: in float64; on a GPU nearly so, ten times as fast.

There, from 512 dimensions on, the tensor cores multiply, and add in float32 over at most 32,768 rows and in
float64 beyond. Every centred coordinate is split into two bfloat16 numbers, high + low to 2⁻¹⁷ of it, and two
products give highᵀhigh + highᵀlow + lowᵀhigh; what is left out, lowᵀlow, is 2⁻¹⁸ of the whole. What comes in
bfloat16 has eight bits, so one product is enough: about a point near the mean that lies on the grid of such
numbers, the coordinates within eight times their size are numbers of float16, of eleven bits, as they are;
what lies further out is rounded to 2⁻¹² of it. Twin: the one product in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.kernels.cloud import fused, triton_there
from isoscope.kernels.sums import slices

WIDE = 512  # dimensions from which float64 is the slower way by far
_ROWS = 32768


@dataclass(frozen=True, eq=False)
class Extent:
    """How far the coordinates of a cloud go: the largest |x|, and about the variance, [d] each in float64."""

    largest: Tensor
    variance: Tensor


def scatter(points: Tensor, weight: Tensor, mean: Tensor, extent: Extent | None = None) -> Tensor:
    """Σ w²(x−m)(x−m)ᵀ over `points` [n, d], `weight` [n] and `mean` [d] in float64, [d, d] in float64.

    Where weights are 0 and 1 and m is the mean of those with 1, their `extent` spares bfloat16 a product.

    >>> scatter(torch.tensor([[1.0, 2.0], [3.0, 2.0]]), torch.ones(2), torch.tensor([2.0, 2.0]))
    tensor([[2., 0.],
            [0., 0.]], dtype=torch.float64)
    """
    width = points.shape[1]
    if len(points) and width >= WIDE and fused(points):
        if points.dtype == torch.bfloat16 and extent is not None:
            return _once(points, weight, mean, extent)
        return _twice(points, weight, mean)
    total = torch.zeros(width, width, dtype=torch.float64, device=points.device)
    for part, found in slices(points):
        centred = torch.where(weight[part, None] > 0, (found - mean) * weight[part, None], 0)
        total.addmm_(centred.T, centred)
    return total


def merged(one: Tensor, other: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """The sum of `one`, `other` and l rᵀ, [p, d, d] in float64; l and r [p, d]. Twin: the code below."""
    if one.is_cuda and triton_there():
        from isoscope.kernels import scatter_triton

        return scatter_triton.merged(one, other, left, right)
    return torch.baddbmm(one + other, left[:, :, None], right[:, None, :])


def near_mean(mean: Tensor, extent: Extent) -> tuple[Tensor, Tensor]:
    """A point near the mean that lies on a grid, and the units that coordinates about it are in, [d] each.

    The step of the grid is that of bfloat16 for numbers of the size √(x̄² + variance); units are powers of
    two in which no coordinate is above 32,768.
    """
    step = _power_below((mean**2 + extent.variance).sqrt()) / 128
    near = (mean / step).round() * step
    return near, _power_below(extent.largest + near.abs()) / 16384


def _power_below(size: Tensor) -> Tensor:
    """The largest power of two that is no larger; of what is tiny or zero, that of 1e-30."""
    return (size.clamp_min(1e-30).view(torch.int64) & (0x7FF << 52)).view(torch.float64)


def _once(points: Tensor, weight: Tensor, mean: Tensor, extent: Extent) -> Tensor:
    """Σ(x−m)(x−m)ᵀ = Σ(x−c)(x−c)ᵀ − n(m−c)(m−c)ᵀ, c near the mean."""
    from isoscope.kernels.scatter_triton import centred, in_units

    near, unit = near_mean(mean, extent)
    off = mean - near
    total = None
    for start in range(0, len(points), _ROWS):
        part = slice(start, start + _ROWS)
        rows = centred(points[part], weight[part], near, unit)
        products = torch.mm(rows.T, rows, out_dtype=torch.float32)
        total = in_units(products, unit, -weight[part].sum() * off, off, total)
    assert total is not None
    return total


def _twice(points: Tensor, weight: Tensor, mean: Tensor) -> Tensor:
    from isoscope.kernels.scatter_triton import split

    total = torch.zeros(points.shape[1], points.shape[1], dtype=torch.float64, device=points.device)
    for start in range(0, len(points), _ROWS):
        part = slice(start, start + _ROWS)
        high, low = split(points[part], weight[part], mean)
        crossed = torch.mm(high.T, low, out_dtype=torch.float32)
        found = torch.mm(high.T, high, out_dtype=torch.float32)
        total += found.add_(crossed).add_(crossed.T)
    return total
