"""The scatter of a cloud about a point, Σ w²(x−m)(x−m)ᵀ: in float64; on a GPU nearly so, ten times as fast.

There, from 512 dimensions on, sums are of whole numbers, which tensor cores add without an error: in floating
point they drop the last bits of every sum, and clouds of few directions read up to 6 % off. Every centred
coordinate is rounded to a whole number of units, one unit a dimension, and written in two or three digits of
base 256, −128 to 127. Products of digits are those of int8, three sums of them over 32,768 rows fit into
int32, and what they stand for is put together in float64. With two digits a coordinate is known to 1/65,000
of the largest of its dimension, a hundredth of the rounding of bfloat16 unless that one is far out; with
three to 1/16 million, as float32 knows it. Twin: the one product in float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.cloud.totals import fused, triton_there
from isoscope.kernels.sums import slices

WIDE = 512  # dimensions from which float64 is the slower way by far
_ROWS = 32768
SIDE = 128  # rows of the scatter that one product gives


def scatter(points: Tensor, weight: Tensor, mean: Tensor, out: Tensor | None = None) -> Tensor:
    """Σ w²(x−m)(x−m)ᵀ over `points` [n, d], `weight` [n] and `mean` [d] in float64, [d, d] in float64.

    It is written into `out` where that is given. All of them may have an axis of sites [k, …] in front.

    >>> scatter(torch.tensor([[1.0, 2.0], [3.0, 2.0]]), torch.ones(2), torch.tensor([2.0, 2.0]))
    tensor([[2., 0.],
            [0., 0.]], dtype=torch.float64)
    """
    width = points.shape[-1]
    if points.numel() and width >= WIDE and fused(points):
        return in_digits(points, weight, mean, out)
    if out is None:
        out = torch.empty(*points.shape[:-2], width, width, dtype=torch.float64, device=points.device)
    if points.dim() == 3:
        for site, (of_site, weights, centre) in enumerate(zip(points, weight, mean, strict=True)):
            scatter(of_site, weights, centre, out[site])
        return out
    total, even = out.zero_(), points.device.type == "cpu" and bool((weight == 1).all())
    for part, found in slices(points):
        centred = found - mean
        if not even:
            centred = torch.where(weight[part, None] > 0, centred * weight[part, None], 0)
        for start in range(0, width, SIDE):  # what lies below the diagonal is what lies above
            rows = slice(start, start + SIDE)
            total[rows, start:].addmm_(centred[:, rows].T, centred[:, start:])
    return total.triu_().add_(total.triu(1).T) if width > SIDE else total


def in_digits(points: Tensor, weight: Tensor, mean: Tensor, out: Tensor | None = None) -> Tensor:
    """The same from products of digits, about m as float32 knows it: nearer than float32 knows x."""
    from isoscope.kernels.scatter.triton import digits, multiplied, put_together

    if points.dim() == 2:
        there = None if out is None else out[None]
        return in_digits(points[None], weight[None], mean[None], there)[0]
    if out is None:
        out = torch.empty(len(points), *2 * points.shape[2:], dtype=torch.float64, device=points.device)
    for start in range(0, max(points.shape[1], 1), _ROWS):
        part = slice(start, start + _ROWS)
        count = 2 if points.dtype == torch.bfloat16 else 3
        written, unit = digits(points[:, part], weight[:, part], mean, count)
        put_together(multiplied(written), unit, out, begun=start > 0)
    return out


def merged(one: Tensor, other: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """The sum of `one`, `other` and l rᵀ, [..., d, d] in float64; l and r [..., d]. Twin: the code below."""
    if one.is_cuda and triton_there():
        from isoscope.kernels.scatter import triton as scatter_triton

        return scatter_triton.merged(one, other, left, right)
    both, width = one + other, one.shape[-1]
    both.view(-1, width, width).baddbmm_(left.reshape(-1, width, 1), right.reshape(-1, 1, width))
    return both
