"""The inner product of U-centred products XXᵀ and YYᵀ through d × d matrices, where vectors are many.

With K and L the matrices XXᵀ and YYᵀ with zeros on their diagonals, ⟨K, L⟩ after U-centring is
tr KL − 2/(n−2)·1ᵀKL1 + 1ᵀK1·1ᵀL1/((n−1)(n−2)). Its parts need XᵀY, row sums and squared norms only.
"""

from __future__ import annotations

from torch import Tensor

from isoscope.geometry.alignment import u_centred
from isoscope.kernels.scatter.scatter import SIDE


def u_product(points: Tensor, other: Tensor) -> Tensor:
    """⟨K, L⟩ of the U-centred products of centred `points` [n, d] and `other` [n, e], both in float64.

    Twin: `geometry.alignment.u_centred`, entry by entry.
    """
    n = len(points)
    if n < points.shape[1] + other.shape[1]:
        return (u_centred(points) * u_centred(other)).sum()
    norms, others = (points**2).sum(1), (other**2).sum(1)
    rows, columns = (points @ points.sum(0)) - norms, (other @ other.sum(0)) - others
    trace = _squares(points, other) - norms @ others
    return trace - 2 / (n - 2) * (rows @ columns) + rows.sum() * columns.sum() / ((n - 1) * (n - 2))


def _squares(points: Tensor, other: Tensor) -> Tensor:
    """‖XᵀY‖²; of a cloud with itself what lies below the diagonal is what lies above."""
    if other is not points:
        return (points.T @ other).square_().sum()
    total = points.new_zeros(())
    for start in range(0, points.shape[1], SIDE):
        rows = (points[:, start : start + SIDE].T @ points[:, start:]).square_()
        total += 2 * rows.sum() - rows[:, : len(rows)].sum()
    return total
