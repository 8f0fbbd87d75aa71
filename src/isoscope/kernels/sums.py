"""Weighted sums of vectors by label, in one pass, in float64, without a float64 copy of the input.

Rows are taken in slices that stay in cache; a slice is turned to float64, and one small product with
its membership matrix adds it to the sums. For 50k × 768 on two cores this takes a tenth of the time of
converting the whole cloud first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

NUMBERS = 2**17
"""How many numbers a slice has on a CPU: a megabyte in float64, which stays in cache and which the allocator
keeps. At eight times as many the pages of every slice are faulted in anew, and sums take three times as
long."""
_ROWS_ON_GPU = 16384
_RUN = 16  # rows that a run of one label must have on average for a product of its own


def slices(points: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Walk over `points` [n, d] in slices of rows, each turned to float64."""
    rows = _ROWS_ON_GPU if points.is_cuda else max(16, NUMBERS // max(1, points.shape[1]))
    for start in range(0, len(points), rows):
        part = slice(start, min(start + rows, len(points)))
        yield part, points[part].double()


def norms(points: Tensor) -> Tensor:
    """‖x‖ of every row, [n] in float64. Twin: ``points.double().norm(dim=1)``."""
    return torch.linalg.vector_norm(points, dim=1, dtype=torch.float64)


def label_sums(points: Tensor, weight: Tensor, label: Tensor, labels: int) -> Tensor:
    """Σ weight·x over the rows of each label, [labels, d]. Twin: one masked sum a label.

    >>> label_sums(torch.tensor([[1.0], [2.0], [4.0]]), torch.ones(3), torch.tensor([0, 1, 0]), 2).tolist()
    [[5.0], [2.0]]
    """
    total = torch.zeros(1, labels, points.shape[1], dtype=torch.float64, device=points.device)
    weight = weight.double()
    for rows, part in slices(points):
        add_by_label(total, weight[None, rows], part, label[rows])
    return total[0]


def add_by_label(total: Tensor, weights: Tensor, part: Tensor, label: Tensor) -> None:
    """Add Σ weight·x over the rows of each label to `total` [w, labels, d], for `weights` [w, n].

    Where labels come in long runs (vectors of one sequence side by side) on a CPU, a product a run; else one
    product with the membership matrix of the labels from the least to the largest.
    """
    low, high = 0, total.shape[1] - 1
    if part.device.type == "cpu":
        label_of, length = torch.unique_consecutive(label, return_counts=True)
        if len(length) <= len(label) // _RUN:
            rows_of = length.tolist()
            if len(set(rows_of)) == 1:  # as in a batch without padding: one product for all
                own = weights.reshape(len(weights), -1, rows_of[0]).transpose(0, 1)
                found = torch.bmm(own, part.reshape(len(own), -1, part.shape[1]))
                total.index_add_(1, label_of, found.transpose(0, 1))
                return
            runs = zip(torch.split(weights, rows_of, 1), torch.split(part, rows_of), strict=True)
            total.index_add_(1, label_of, torch.stack([weight @ rows for weight, rows in runs], 1))
            return
        low, high = int(label.min()), int(label.max())
    member = total.new_zeros(len(weights), high - low + 1, len(part))
    member[:, label - low, torch.arange(len(part), device=part.device)] = weights
    total[:, low : high + 1] += (member.flatten(0, 1) @ part).reshape(len(weights), -1, part.shape[1])


def mean_cosine(points: Tensor) -> float:
    """A over all distinct pairs, exact in O(nd): (‖Σû‖² − n)/(n(n−1)). Twin: `geometry.cosine.mean_cosine`.

    >>> round(mean_cosine(torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])), 6)
    0.333333
    """
    total = torch.zeros(points.shape[1], dtype=torch.float64, device=points.device)
    n = torch.zeros((), dtype=torch.float64, device=points.device)
    for _, part in slices(points):
        weight = torch.linalg.vector_norm(part, dim=1).reciprocal()
        weight = torch.where(weight.isinf(), 0, weight)
        total += weight @ part
        n += (weight > 0).sum()
    return float((total @ total - n) / (n * (n - 1))) if n > 1 else math.nan
