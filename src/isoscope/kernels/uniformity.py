"""Uniformity from one product of directions: the pairs are not copied out of the matrix of cosines."""

from __future__ import annotations

import math

from torch import Tensor

from isoscope.geometry.cosine import directions


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
    kernel = (unit @ unit.T).sub_(1).mul_(4).exp_().fill_diagonal_(0)
    return math.log(float(kernel.sum()) / (n * (n - 1)))
