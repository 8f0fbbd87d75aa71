"""Queries and keys of one head on two axes, to be looked at.

Axes fitted to the vectors as they are lean on the mean by construction: a cloud that drifts is drawn apart
from the origin along the first. So three kinds of axes stand beside each other. Always the vectors as they
are go on the axes; only what the axes are fitted to differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Axes = Literal["shared", "centred", "random"]
AXES: tuple[Axes, ...] = ("shared", "centred", "random")


@dataclass(frozen=True, eq=False)
class OnAxes:
    """Coordinates of queries [n, 2] and keys [m, 2], and the share of the energy on each axis [2]."""

    query: Tensor
    key: Tensor
    share: Tensor


def shared_axes(query: Tensor, key: Tensor, how: Axes, seed: int = 0) -> OnAxes:
    """Queries [n, e] and keys [m, e] on two orthonormal axes a₁, a₂ that both share.

    "shared": the first two right-singular vectors of [Q; K]. "centred": those of [Q − q̄; K − k̄], so that
    the means do not make the axes. "random": two random directions. The share of an axis is ‖Xa‖²/‖X‖² of
    the X it is fitted to, of [Q; K] for random ones; NaN where that is zero. Each axis points so that the
    mean query lies at its positive side. Where there is no second direction its coordinates are 0.
    """
    query, key = query.double(), key.double()
    centred = torch.cat([query - query.mean(0), key - key.mean(0)])
    stack = centred if how == "centred" else torch.cat([query, key])
    principal = torch.linalg.svd(stack, full_matrices=False).Vh.T[:, :2]
    axes = random_axes(query.shape[1], seed) if how == "random" else _two(principal)
    mean, largest = query.mean(0) @ axes, axes.gather(0, axes.abs().argmax(0, keepdim=True))[0]
    leaning = torch.where(mean != 0, mean, largest)  # an axis that the mean is on neither side of
    axes = axes * torch.where(leaning < 0, -1.0, 1.0).double()
    return OnAxes(query @ axes, key @ axes, ((stack @ axes) ** 2).sum(0) / (stack**2).sum())


def pull(query: Tensor, key: Tensor) -> float:
    """|q̄·k̄| / (mean ‖q‖ · mean ‖k‖): |cos(q̄, k̄)| times both relative drifts, in [0, 1]; 0 of nothing."""
    if not len(query) or not len(key):
        return 0.0
    query, key = query.double(), key.double()
    sizes = query.norm(dim=1).mean() * key.norm(dim=1).mean()
    return float((query.mean(0) @ key.mean(0)).abs() / sizes) if sizes > 0 else 0.0


def random_axes(width: int, seed: int) -> Tensor:
    """Two random orthonormal directions, [e, 2]; the second is zero in one dimension."""
    made = torch.randn(width, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return _two(torch.linalg.qr(made).Q)


def _two(axes: Tensor) -> Tensor:
    """Of [e, 1] or [e, 2] the latter, a missing axis being zero."""
    return torch.nn.functional.pad(axes, (0, 2 - axes.shape[1]))
