"""Uniformity from one product of directions: the pairs are not copied out of the matrix of cosines."""

from __future__ import annotations

import math

from torch import Tensor

from isoscope.geometry.cosine import directions

ROWS = 256  # that are compared at once on a CPU


def uniformity(points: Tensor) -> float:
    """The log of the mean of exp(−2‖û_i − û_j‖²) over all i ≠ j. Twin: `geometry.cosine.uniformity`.

    >>> import torch
    >>> round(uniformity(torch.tensor([[1.0, 0.0], [-2.0, 0.0]])), 6)
    -8.0
    """
    unit = directions(points)
    n = len(unit)
    if n < 2:
        return math.nan
    most = n if unit.is_cuda else ROWS
    total = unit.new_zeros(())
    for start in range(0, n, most):  # pairs below the diagonal are those above
        kernel = (unit[start : start + most] @ unit[start:].T).sub_(1).mul_(4).exp_()
        square = kernel[:, : len(kernel)].fill_diagonal_(0)
        total += 2 * kernel.sum() - square.sum()
    return math.log(float(total) / (n * (n - 1)))
