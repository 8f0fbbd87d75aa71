"""What the γ and β of a norm say by themselves, and against the vocabulary that reads what leaves it."""

from __future__ import annotations

import math

from torch import Tensor

OUTLYING = 3.0  # times the median of |γ|


def weight_outliers(weight: Tensor) -> int:
    """How many entries of γ exceed three times the median size, #{k : |γ_k| > 3·median|γ|}."""
    sizes = sorted(abs(each) for each in weight.double().tolist())
    middle = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
    return sum(size > OUTLYING * middle for size in sizes)


def weight_size(weight: Tensor) -> float:
    """‖γ‖/√d: 1 where γ is 1 everywhere."""
    return math.sqrt(math.fsum(each**2 for each in weight.double().tolist()) / len(weight))


def bias_size(bias: Tensor) -> float:
    """‖β‖."""
    return math.sqrt(math.fsum(each**2 for each in bias.double().tolist()))


def cosine_with_mean(vector: Tensor, vocabulary: Tensor) -> float:
    """cos(v, w̄) with w̄ the mean row of the vocabulary [|V|, d], in [−1, 1]; NaN where one of them is zero."""
    mean = vocabulary.double().mean(0)
    size = float(vector.double().norm() * mean.norm())
    return float(vector.double() @ mean) / size if size > 0 else math.nan
