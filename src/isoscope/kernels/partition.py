"""Partition isotropy of a whole matrix, a block of rows at a time: |V| × d numbers are never held twice.

I = min Z/max Z, Z(c) = Σ_w exp(w·c), over the eigenvectors c of WᵀW. Z is summed as its logarithm, so nothing
overflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from isoscope.geometry.partition import eigenvectors

BLOCK = 2**20  # numbers at a time: 8 MiB in float64
SIGNS = ("both", "one", "lapack")


def partition_isotropy(
    matrix: Any, *, signs: str = "both", unit: bool = False, dtype: torch.dtype = torch.float64
) -> float:
    """I of the rows of `matrix` [n, d], in [0, 1]. Twin: `geometry.partition`.

    An eigenvector has two signs: "both" tries both, "one" takes that with its largest coordinate positive,
    "lapack" whichever the library returns, which is what published code did, in float32. I depends on
    the scale of the rows; with `unit` they are taken in units of their mean norm.

    >>> round(partition_isotropy([[1.0, 0.0], [-1.0, 0.0]]), 6)  # 1/cosh(1)
    0.648054
    """
    rows = torch.as_tensor(matrix)
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"matrix must be [rows, dimensions], with a row; it is {list(rows.shape)}")
    if signs not in SIGNS:
        raise ValueError(f"signs must be one of {', '.join(SIGNS)}; it is '{signs}'")
    if not all(bool(block.isfinite().all()) for block in _blocks(rows, rows.dtype)):
        raise ValueError("matrix holds NaN or Inf; leave those rows out")
    size = mean_norm(rows) if unit else 1.0
    if size == 0:
        return math.nan
    if signs == "lapack":  # one product, so that rounding is LAPACK's own
        whole = rows.to(dtype)
        directions = torch.linalg.eigh(whole.T @ whole).eigenvectors.T
    else:
        directions = _directions(rows, dtype)
    up, down = _log_sums(rows, directions, dtype, (1 / size,))[0]
    return evenness(torch.cat([up, down]) if signs == "both" else up)


def forms(
    points: Tensor, dtype: torch.dtype = torch.float64, gram: Tensor | None = None
) -> tuple[float, float, float]:
    """I over both signs, over one, and over both of the rows in units of their mean norm.

    `gram` is XᵀX [d, d] where it is known already. Twin: `geometry.partition.forms`.
    """
    if not len(points):
        return math.nan, math.nan, math.nan
    size = mean_norm(points)
    scales = (1.0, 1 / size) if size > 0 else (1.0,)
    sums = _log_sums(points, _directions(points, dtype, gram), dtype, scales)
    unit = evenness(torch.cat(sums[1])) if size > 0 else math.nan
    return evenness(torch.cat(sums[0])), evenness(sums[0][0]), unit


def mean_norm(points: Tensor) -> float:
    """The mean length of the rows, in float64."""
    return math.fsum(float(block.norm(dim=1).sum()) for block in _blocks(points, torch.float64)) / len(points)


def evenness(logarithms: Tensor) -> float:
    """Min Z/max Z from log Z."""
    return float((logarithms.min() - logarithms.max()).exp())


def _directions(points: Tensor, dtype: torch.dtype, gram: Tensor | None = None) -> Tensor:
    """The eigenvectors of XᵀX as rows, largest coordinate positive, [min(n, d), d]."""
    if len(points) < points.shape[1]:
        return eigenvectors(points).to(dtype)
    if gram is None:
        gram = torch.zeros(points.shape[1], points.shape[1], dtype=dtype, device=points.device)
        for block in _blocks(points, dtype):
            gram.addmm_(block.T, block)
    found = torch.linalg.eigh(gram).eigenvectors.T
    largest = found.gather(1, found.abs().argmax(1, keepdim=True))
    return found * torch.where(largest < 0, -1.0, 1.0).to(dtype)


def _log_sums(
    points: Tensor, directions: Tensor, dtype: torch.dtype, scales: tuple[float, ...]
) -> list[tuple[Tensor, Tensor]]:
    """The logarithms of Σ exp(±scale·x·c) over the rows, a number for every direction."""
    found: list[tuple[Tensor, Tensor]] = []
    for block in _blocks(points, dtype):
        scores = block @ directions.T
        if len(directions) < points.shape[1]:  # the eigenvectors that no row leans on: x·c = 0
            scores = torch.cat([scores, scores.new_zeros(len(scores), 1)], dim=1)
        new = [((s * scores).logsumexp(0), (-s * scores).logsumexp(0)) for s in scales]
        both = zip(found or new, new, strict=True)
        found = [(torch.logaddexp(a, c), torch.logaddexp(b, d)) for (a, b), (c, d) in both] if found else new
    return found


def _blocks(points: Tensor, dtype: torch.dtype) -> Iterator[Tensor]:
    rows = max(1, BLOCK // max(1, points.shape[1]))
    return (points[start : start + rows].to(dtype) for start in range(0, len(points), rows))
