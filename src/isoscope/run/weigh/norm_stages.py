"""The final norm taken apart on data: what enters it, standardised, times γ, plus β, and the same edited.

Stages are formed in float64 from what enters the norm. Spread and sample are folded only of what enters and
of what is standardised: those of x̂⊙γ + β follow exactly, mean ⊙ γ + β, scatter ⊙ γγᵀ. Edits keep x̂ and
change γ or β: β := 0 (of a norm that has β), γ := 1, or both from another checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.measures.base import undefined
from isoscope.models.weights import Norm
from isoscope.results.reading import Reading
from isoscope.sites import of_form
from isoscope.stats.base import Stat
from isoscope.stats.centre import Centre
from isoscope.stats.directions import Directions
from isoscope.stats.intervals import enough, few, jackknife
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.seen import Places, Vectors

BEFORE, STANDARDISED, SCALED, OUTPUT = "norm_before", "norm_standardised", "norm_scaled", "norm_output"
WITHOUT_BIAS, WITHOUT_WEIGHT = "norm_without_bias", "norm_without_weight"
OF_STAGES = (
    "mean_cosine", "mean_cosine_between", "drift", "relative_drift", "mean_norm", "isoscore",
    "participation_ratio", "effective_rank", "partition_isotropy", "partition_isotropy_unit",
)  # fmt: skip
_FOLDED: tuple[type[Stat], ...] = (Directions, Centre)
_FOLLOWING: tuple[type[Stat], ...] = (Moments, Reservoir)
Records = Mapping[type[Stat], Stat]


@dataclass(frozen=True, eq=False)
class Change:
    """What a stage makes of x̂: x̂ ⊙ weight + bias, each [d]; None changes nothing."""

    weight: Tensor | None
    bias: Tensor | None

    def of(self, standardised: Tensor) -> Tensor:
        """x̂ ⊙ weight + bias."""
        scaled = standardised if self.weight is None else standardised * self.weight.to(standardised)
        return scaled if self.bias is None else scaled + self.bias.to(standardised)

    def of_record(self, record: Stat) -> Stat:
        """The spread or sample of the stage, from that of x̂."""
        if isinstance(record, Reservoir):
            return replace(record, vectors=self.of(record.vectors))
        spread = cast("Moments", record)
        weight = torch.ones_like(spread.mean[0]) if self.weight is None else self.weight.to(spread.mean)
        scatter = spread.scatter * torch.outer(weight, weight)
        return replace(spread, mean=self.of(spread.mean), scatter=scatter)


def standardised(norm: Norm, x: Tensor) -> Tensor:
    """x̂ of vectors [n, d] in float64: centred unless the norm is an RMSNorm, over √(mean square + ε)."""
    x = x.double()
    x = x - x.mean(-1, keepdim=True) if norm.kind == "LayerNorm" else x
    return x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt()


def stages(norm: Norm, edits: Mapping[str, Norm] | None = None) -> dict[str, Change]:
    """The stages after standardising, and the edits, by kind: one of another norm is ``norm_`` + its name."""
    weight, bias = norm.weight.double(), None if norm.bias is None else norm.bias.double()
    found = {STANDARDISED: Change(None, None), SCALED: Change(weight, None), OUTPUT: Change(weight, bias)}
    if bias is not None:
        found[WITHOUT_BIAS] = Change(weight, None)
    found[WITHOUT_WEIGHT] = Change(None, bias)
    for name, other in (edits or {}).items():
        kind = of_form("norm", name)
        if other.weight.shape != weight.shape:
            raise IsoscopeError(
                f"the norm '{name}' has {other.weight.numel()} dimensions where the model's final norm has "
                f"{weight.numel()}; give one of a checkpoint of the same model."
            )
        if kind in (BEFORE, *found):
            raise IsoscopeError(f"an edit cannot be called '{name}': {kind} is a stage; give another name.")
        found[kind] = Change(other.weight.double(), None if other.bias is None else other.bias.double())
    return found


@dataclass(frozen=True, eq=False)
class NormRecords:
    """Records by stage: directions and centre of every one, spread and sample of the first two."""

    held: Mapping[str, Records]

    @classmethod
    def of(cls, norm: Norm, changes: Mapping[str, Change], entering: Tensor, places: Places) -> NormRecords:
        """Fold the vectors that count, [n, d], of one batch."""

        def folded(points: Tensor, *more: type[Stat]) -> Records:
            seen = Vectors.at(points, places)
            return {stat: stat.of(seen) for stat in (*_FOLDED, *more)}

        found, plain = {BEFORE: folded(entering.double(), *_FOLLOWING)}, standardised(norm, entering)
        made: dict[tuple[int, int], Records] = {}  # β := 0 is the stage before β: folded once
        for kind, change in changes.items():
            same = id(change.weight), id(change.bias)
            if same not in made:
                made[same] = folded(change.of(plain), *(_FOLLOWING if kind == STANDARDISED else ()))
            found[kind] = made[same]
        return cls(found)

    def merge(self, other: NormRecords) -> NormRecords:
        """The records of both streams."""
        found: dict[str, Records] = {}
        for kind, mine in self.held.items():
            found[kind] = {stat: cast("Any", one).merge(other.held[kind][stat]) for stat, one in mine.items()}
        return NormRecords(found)

    def whole(self, changes: Mapping[str, Change]) -> dict[str, Records]:
        """Every record of every stage, in their order."""
        plain, found = self.held[STANDARDISED], dict(self.held)
        for kind, change in changes.items():
            following = {stat: change.of_record(plain[stat]) for stat in _FOLLOWING}
            found[kind] = {**following, **found[kind]}
        return found


def bias_cancels(scaled: Centre, bias: Tensor | None) -> Reading:
    """cos(β, −E[γ⊙x̂]): 1 where β takes away the drift that γ leaves, −1 where it adds to it."""

    def cosine(mean: Tensor, shift: Tensor) -> Tensor:
        return -(mean @ shift) / (mean.norm(dim=-1) * shift.norm())

    return _of_mean(scaled, bias, cosine, 0.0, (-1.0, 1.0))


def drift_removed_by_bias(scaled: Centre, bias: Tensor | None) -> Reading:
    """1 − ‖E[γ⊙x̂] + β‖/‖E[γ⊙x̂]‖: negative where β adds; null: β of that norm at right angles to the mean."""

    def removed(mean: Tensor, shift: Tensor) -> Tensor:
        return 1 - (mean + shift).norm(dim=-1) / mean.norm(dim=-1)

    length = float(scaled.sums.mean.norm()) if scaled.sums.n else math.nan
    size = math.nan if bias is None else float(bias.double().norm())
    null = 1 - math.hypot(length, size) / length if length else math.nan
    return _of_mean(scaled, bias, removed, null, (-math.inf, 1.0))


def _of_mean(
    record: Centre, bias: Tensor | None, read: Any, null: float, bounds: tuple[float, float]
) -> Reading:
    """A reading of the mean and β, with the jackknife of it over groups of sequences."""
    sums = record.sums
    if bias is None:
        return undefined(sums.n, "the final norm has no bias")
    if sums.n < 1:
        return undefined(0, "no vector")
    shift = bias.to(sums.total).double()
    value = float(read(sums.mean, shift))
    if not math.isfinite(value):
        return undefined(sums.n, "the bias or the mean is zero")
    if not enough(sums.sequences, sums.joint):
        return Reading(value, sums.n, null, note=few(sums.joint))
    rest = (sums.total.sum(0) - sums.total) / (sums.count.sum() - sums.count)[:, None]
    low, high = jackknife(value, read(rest, shift), sums.count)
    return Reading(value, sums.n, null, max(low, bounds[0]), min(high, bounds[1]))
