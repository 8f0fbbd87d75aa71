"""95 % intervals by the jackknife that leaves out a group of whole sequences at a time.

Groups differ in size, so the unequal form is used (Busing, Meijer & van der Leeden 1999), with the t
quantile of G−1 degrees, G the number of groups of equal size that would weigh the same: with G all groups,
ragged sequences cover .82 to .88 instead of .95. Fewer than 8 sequences give none: the quantile would be
a guess about tails.
"""

from __future__ import annotations

import math

from scipy import stats
from torch import Tensor

LEAST_SEQUENCES, LEAST_GROUPS = 8, 5
LEVEL = 0.95
FEW = f"no interval: fewer than {LEAST_SEQUENCES} different sequences"


def jackknife(value: float, without: Tensor, count: Tensor) -> tuple[float, float]:
    """The interval for `value`, given it with each group left out [G] and the groups' sizes [G].

    >>> import torch
    >>> data = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    >>> low, high = jackknife(2.5, (data.sum() - data) / 3, torch.ones(4))
    >>> f"{low:.3f} {high:.3f}"  # as the t interval of the mean
    '0.446 4.554'
    """
    error, quantile = _error(value, without, count)
    return value - quantile * error, value + quantile * error


def jackknife_of_square(
    square: float, square_without: Tensor, length: float, along_without: Tensor, count: Tensor
) -> tuple[float, float]:
    """The interval for ‖μ‖² given its unbiased estimate, and the mean along its own direction.

    Close to its noise the square hardly moves when a group is left out, and its own interval covers .82.
    So it reaches up at least as far as that of the length in one dimension, (√(square + e²) + t·e)².
    """
    low, high = jackknife(square, square_without, count)
    error, quantile = _error(length, along_without, count)
    return low, max(high, (math.sqrt(max(square, 0) + error**2) + quantile * error) ** 2)


def _error(value: float, without: Tensor, count: Tensor) -> tuple[float, float]:
    """The standard error, and the quantile of t."""
    used = (count > 0) & (count < count.sum())
    groups = int(used.sum())
    if groups < 2:
        return math.nan, math.nan
    inverse_share = (count.sum() / count[used]).double().cpu()
    pseudo = inverse_share * value - (inverse_share - 1) * without[used].double().cpu()
    centre = groups * value - ((1 - 1 / inverse_share) * without[used].double().cpu()).sum()
    variance = float(((pseudo - centre) ** 2 / (inverse_share - 1)).mean())
    equal_groups = float((inverse_share**-2).sum() ** 2 / (inverse_share**-4).sum())
    return math.sqrt(variance), float(stats.t.ppf((1 + LEVEL) / 2, max(equal_groups - 1, 1)))


def enough(sequences: Tensor) -> bool:
    """Whether the groups [G] hold sequences enough for an interval; equal sequences share a group."""
    return float(sequences.sum()) >= LEAST_SEQUENCES and int((sequences > 0).sum()) >= LEAST_GROUPS
