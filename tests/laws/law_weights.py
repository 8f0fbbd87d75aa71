"""The table that classifies every measure of weights, and heads, norms and vocabularies to read them of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.geometry.spectra import factors
from isoscope.measures.base import Measure
from isoscope.measures.table import OF_WEIGHTS, of_weights
from isoscope.results.reading import Reading
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.weights import AllRows, HeadWeights, NormWeights
from tests.laws.law_clouds import cloud, rotation

MEASURES: tuple[Measure, ...] = tuple(measure for at in OF_WEIGHTS for measure in of_weights(at))


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class HeadsMade:
    """W_Q [h, d, e], W_K [g, d, e], the norm before them, and the bias of the queries [h, e]."""

    wq: Tensor
    wk: Tensor
    scale: float
    gamma: Tensor
    beta: Tensor
    query_bias: Tensor

    @property
    def record(self) -> HeadWeights:
        offset = torch.einsum("hde,d->he", self.wq, self.beta) + self.query_bias
        parts = factors(self.wq, self.wk, scale=self.scale, gamma=self.gamma)
        return HeadWeights.of(parts, query_offset=self.scale * offset, length=64)

    def defined(self, measure: Measure) -> Tensor:
        given: dict[str, Any] = {"scale": self.scale, "gamma": self.gamma}
        if measure.name == "key_bias_norm":
            given |= {"beta": self.beta, "query_bias": self.query_bias}
        found = measure.definition(self.wq, self.wk, **given)
        assert isinstance(found, Tensor)
        return found


def heads(seed: int, count: int = 4, groups: int = 2, width: int = 12, inner: int = 5) -> HeadsMade:
    made = [normal(seed + place, number, width, inner) for place, number in enumerate((count, groups))]
    return HeadsMade(
        wq=made[0] + 0.2 * made[1].repeat_interleave(count // groups, 0),
        wk=made[1],
        scale=0.3,
        gamma=1 + 0.3 * normal(seed + 2, width),
        beta=0.2 * normal(seed + 3, width),
        query_bias=normal(seed + 4, count, inner),
    )


HEADS = {
    "grouped": heads(1),
    "one head": heads(2, 1, 1, 7, 3),
    "wider inside than outside": heads(3, 2, 2, 3, 6),
    "full width": heads(4, 3, 3, 5, 5),
    "no bias": replace(heads(5), beta=0 * normal(0, 12), query_bias=0 * normal(0, 4, 5)),
}


def turned(made: HeadsMade) -> HeadsMade:
    """The same heads in other coordinates; γ is folded in before, as it is no rotation's friend."""
    turn = rotation(made.wq.shape[1], 9)
    gain = made.gamma[:, None]
    ones = torch.ones_like(made.gamma)
    wq, wk = (turn @ (weight * gain) for weight in (made.wq, made.wk))
    return replace(made, wq=wq, wk=wk, gamma=ones, beta=turn @ (made.beta / made.gamma))


def larger(made: HeadsMade) -> HeadsMade:
    return replace(made, scale=3.7 * made.scale)


@dataclass(frozen=True, eq=False)
class NormMade:
    """γ, β and the vocabulary behind the norm."""

    weight: Tensor
    bias: Tensor | None
    vocabulary: Tensor

    @property
    def record(self) -> NormWeights:
        return NormWeights(self.weight, self.bias, self.vocabulary.double().mean(0))


NORMS = {
    "plain": NormMade(1 + 0.1 * normal(1, 9), normal(2, 9), normal(3, 40, 9)),
    "outliers": NormMade(torch.tensor([1.0, -9.0, 1.1, 0.9, 4.0, 1.0]), normal(4, 6), normal(5, 3, 6)),
    "one dimension": NormMade(torch.tensor([2.0]), torch.tensor([-3.0]), torch.tensor([[1.0], [2.0]])),
}
NORM_TAKES: dict[str, Callable[[NormMade], tuple[Tensor | None, ...]]] = {
    "norm_weight_size": lambda made: (made.weight,),
    "norm_weight_outliers": lambda made: (made.weight,),
    "norm_bias_size": lambda made: (made.bias,),
    "bias_vocabulary_cosine": lambda made: (made.bias, made.vocabulary),
    "weight_vocabulary_cosine": lambda made: (made.weight, made.vocabulary),
}

VOCABULARIES = {
    "tall": 0.3 * normal(1, 300, 7) + 0.2,
    "square": 0.5 * normal(2, 8, 8),
    "flat": 0.4 * normal(3, 4, 9),
    "one dimension": 0.5 + 0.1 * normal(4, 30, 1),
}


def vocabulary_reading(measure: Measure, matrix: Tensor) -> Reading:
    seen = cloud(matrix, [1] * len(matrix)).seen()
    return measure.reading({Moments: Moments.of(seen), Reservoir: AllRows(matrix)}, {})  # type: ignore[dict-item]


@dataclass(frozen=True)
class WeightKind:
    """What the laws may expect of a measure of weights."""

    null: bool = True
    scale: int = 0  # how often the scale of W goes into it


KINDS: dict[str, WeightKind] = {
    "trace": WeightKind(scale=1),
    "trace_square": WeightKind(scale=2),
    "frobenius": WeightKind(scale=1),
    "spectrum_mean": WeightKind(scale=1),
    "spectrum_variance": WeightKind(scale=2),
    "spectrum_variance_inside": WeightKind(scale=2),
    "symmetric_share": WeightKind(),
    "spectral_norm": WeightKind(scale=1),
    "query_key_rank": WeightKind(),
    "key_bias_norm": WeightKind(null=False, scale=1),
    "partition_isotropy_float32": WeightKind(),
    "singular_entropy": WeightKind(),
    "norm_weight_size": WeightKind(),
    "norm_weight_outliers": WeightKind(),
    "norm_bias_size": WeightKind(),
    "bias_vocabulary_cosine": WeightKind(),
    "weight_vocabulary_cosine": WeightKind(),
}


def inside(measure: Measure, found: Reading, most: float = math.inf) -> None:
    """Value and null lie within the bounds; what is undefined says why."""
    low, high = measure.bounds
    high = min(high, most) if measure.ranklike else high
    for number in (found.value, found.null):
        assert math.isnan(number) or low - 1e-9 <= number <= high + 1e-9, f"{measure.name}: {number}"
    assert not math.isnan(found.value) or found.note, f"{measure.name} is NaN and does not say why"
    assert math.isnan(found.low) and math.isnan(found.high)
