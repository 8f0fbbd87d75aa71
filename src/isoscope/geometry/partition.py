"""How even the partition function is: I(X) = min Z/max Z over directions, Z(c) = Σ_x exp(x·c).

Mu & Viswanath 2018 take the eigenvectors of XᵀX for directions. An eigenvector has two signs, and which
one a library returns is an accident; so both are tried, and the form with one sign (the coordinate of
largest size positive) is there to compare with published numbers. I depends on the scale of the vectors:
.92 to .04 for one cloud scaled by .1 to 4. The form in units of the mean norm does not.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def partition_isotropy(points: Tensor) -> float:
    """Min Z/max Z over the eigenvectors of XᵀX and their opposites, in [0, 1]; 1 when isotropic."""
    return forms(points)[0]


def partition_isotropy_one_sign(points: Tensor) -> float:
    """The same over one sign of each eigenvector."""
    return forms(points)[1]


def partition_isotropy_unit(points: Tensor) -> float:
    """`partition_isotropy` of the vectors in units of their mean norm."""
    return forms(points)[2]


def partition_isotropy_float32(points: Tensor) -> float:
    """The same over the eigenvectors as the library signs them, in float32: as published code has it."""
    points = points.float()
    sums = (points @ torch.linalg.eigh(points.T @ points).eigenvectors).exp().sum(0)
    return float(sums.min() / sums.max())


def forms(points: Tensor) -> tuple[float, float, float]:
    """The three, from one set of eigenvectors: they do not depend on the scale."""
    if not len(points):
        return math.nan, math.nan, math.nan
    points = points.double()
    scores = points @ eigenvectors(points).T
    if len(points) < points.shape[1]:  # the eigenvectors that no vector leans on: x·c = 0
        scores = torch.cat([scores, scores.new_zeros(len(scores), 1)], dim=1)
    both = torch.cat([scores, -scores], dim=1)
    size = float(points.norm(dim=1).mean())
    return _evenness(both), _evenness(scores), _evenness(both / size) if size > 0 else math.nan


def partition_isotropy_first(points: Tensor) -> float:
    """To first order, (n − ‖Σx‖)/(n + ‖Σx‖), in [−1, 1]; negative once ‖x̄‖ exceeds 1."""
    total = float(points.double().sum(0).norm())
    return (len(points) - total) / (len(points) + total) if len(points) else math.nan


def partition_isotropy_second(points: Tensor) -> float:
    """To second order, (n − ‖Σx‖ + σ²_min/2)/(n + ‖Σx‖ + σ²_max/2), σ singular values, in [−1, 1]."""
    if not len(points):
        return math.nan
    points = points.double()
    values = torch.linalg.eigvalsh(points.T @ points).clamp_min(0)
    n, total = len(points), float(points.sum(0).norm())
    return float((n - total + values[0] / 2) / (n + total + values[-1] / 2))


def eigenvectors(points: Tensor) -> Tensor:
    """The eigenvectors of XᵀX as rows, each with its coordinate of largest size positive, [min(n, d), d].

    Of fewer vectors than dimensions, those that some vector leans on.
    """
    points = points.double()
    if len(points) < points.shape[1]:
        found = torch.linalg.svd(points, full_matrices=False).Vh
    else:
        found = torch.linalg.eigh(points.T @ points).eigenvectors.T
    largest = found.gather(1, found.abs().argmax(1, keepdim=True))
    return found * torch.where(largest < 0, -1.0, 1.0)


def _evenness(scores: Tensor) -> float:
    """Min Z/max Z of x·c [n, directions], by log-sum-exp."""
    size = torch.logsumexp(scores, dim=0)
    return float((size.min() - size.max()).exp())
