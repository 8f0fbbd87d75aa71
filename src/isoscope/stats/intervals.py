"""95 % intervals by the jackknife that leaves out a group of whole sequences at a time.

Groups differ in size, so the unequal form is used (Busing, Meijer & van der Leeden 1999), with the t
quantile of G−1 degrees. Fewer than 8 sequences give none: the quantile would be a guess about tails.
"""

from __future__ import annotations

import math

from scipy import stats
from torch import Tensor

LEAST_SEQUENCES = 8
LEVEL = 0.95


def jackknife(value: float, without: Tensor, count: Tensor) -> tuple[float, float]:
    """The interval for `value`, given it with each group left out [G] and the groups' sizes [G].

    >>> import torch
    >>> data = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    >>> low, high = jackknife(2.5, (data.sum() - data) / 3, torch.ones(4))
    >>> f"{low:.3f} {high:.3f}"  # as the t interval of the mean
    '0.446 4.554'
    """
    used = (count > 0) & (count < count.sum())
    groups = int(used.sum())
    if groups < 2:
        return math.nan, math.nan
    inverse_share = (count.sum() / count[used]).double().cpu()
    pseudo = inverse_share * value - (inverse_share - 1) * without[used].double().cpu()
    centre = groups * value - ((1 - 1 / inverse_share) * without[used].double().cpu()).sum()
    variance = float(((pseudo - centre) ** 2 / (inverse_share - 1)).mean())
    reach = float(stats.t.ppf((1 + LEVEL) / 2, groups - 1)) * math.sqrt(variance)
    return value - reach, value + reach


def enough(sequences: Tensor) -> bool:
    """Whether there are sequences enough for an interval."""
    return float(sequences.sum()) >= LEAST_SEQUENCES
