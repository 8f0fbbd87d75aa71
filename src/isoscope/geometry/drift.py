"""Where the cloud's centre lies: the norm of its mean, as it is and against the norms of its vectors."""

from __future__ import annotations

import math

from torch import Tensor


def drift(points: Tensor) -> float:
    """‖x̄‖, the norm of the mean vector of `points` [n, d]; at least 0."""
    return float(points.double().mean(0).norm())


def mean_norm(points: Tensor) -> float:
    """The mean of ‖x‖; at least 0."""
    return float(points.double().norm(dim=1).mean())


def relative_drift(points: Tensor) -> float:
    """‖x̄‖ / mean ‖x‖, in [0, 1]: 1 when all vectors are the same, about 1/√n when isotropic.

    NaN when every vector is zero.
    """
    length = mean_norm(points)
    return drift(points) / length if length > 0 else math.nan
