"""Inside a sequence: how alike its vectors are, and how far they are from being all the same.

Both are means over sequences with at least two vectors; where there is none they are NaN.
"""

from __future__ import annotations

import math

from torch import Tensor

from isoscope.geometry.cosine import mean_cosine_between


def intra_similarity(points: Tensor, sequence: Tensor) -> float:
    """The mean over sequences of mean_i cos(x_i, x̄_s), in [−1, 1] (Ethayarajh 2019).

    Vectors of norm zero are left out; a sequence whose mean is zero has none.
    """
    found = []
    for name in sorted(set(sequence.tolist())):
        mine = points[sequence == name].double()
        mine = mine[mine.norm(dim=1) > 0]
        centre = mine.sum(0)
        if len(mine) > 1 and float(centre.norm()) > 0:
            found.append(float((mine @ centre / mine.norm(dim=1) / centre.norm()).mean()))
    return sum(found) / len(found) if found else math.nan


def intra_similarity_adjusted(points: Tensor, sequence: Tensor) -> float:
    """`intra_similarity` less the mean cosine between sequences, in [−2, 2]."""
    return intra_similarity(points, sequence) - mean_cosine_between(points, sequence)


def rank_residual(points: Tensor, sequence: Tensor) -> float:
    """The mean over sequences of ‖X_s − 1x̄_sᵀ‖/‖X_s‖, in [0, 1]: 0 when a sequence is one point."""
    found = []
    for name in sorted(set(sequence.tolist())):
        mine = points[sequence == name].double()
        if len(mine) > 1 and float(mine.norm()) > 0:
            found.append(float((mine - mine.mean(0)).norm() / mine.norm()))
    return sum(found) / len(found) if found else math.nan
