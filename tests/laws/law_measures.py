"""The laws of measures, as checkers that raise, and the table that classifies every measure."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from isoscope.measures.base import Measure, Reading
from tests.laws.law_clouds import DTYPES, Cloud, cloud, gaussian, rotation

RELATIVE, ABSOLUTE, MERGED = 1e-5, 1e-6, 1e-9  # the same everywhere


@dataclass(frozen=True)
class Kind:
    """What the laws may expect of a measure.

    `null` says how its mean over isotropic clouds meets the reported null: "mean"; "square" (a root, so
    that the squares are compared); "reciprocal" (1/value is unbiased); "simulated" (the null is itself a
    mean over draws, with their error); "none". `model_error` is how far the null's formula may be from
    the truth, as a share of the null, at n vectors.
    """

    interval: bool
    null: str
    model_error: Callable[[int], float] = lambda n: 0.0


KINDS: dict[str, Kind] = {
    "mean_cosine": Kind(interval=False, null="mean"),
    "mean_cosine_between": Kind(interval=True, null="mean"),
    "cosine_variance": Kind(interval=False, null="mean"),
    # sums of n coordinates of unit vectors are not yet normal: 35 % off at n=2, 18 % at 5, 4 % at 20
    "rogue_contribution": Kind(interval=False, null="mean", model_error=lambda n: 1 / n),
    "drift": Kind(interval=True, null="square"),
    "relative_drift": Kind(interval=True, null="square"),
    "mean_norm": Kind(interval=True, null="none"),
    # a ratio of means for a mean of ratios: 1.4 % off at 20 × 5, and 5 % of (PR − 1) at 3 × 4
    "isoscore": Kind(interval=False, null="mean", model_error=lambda n: 0.02 + 0.1 / n),
    "participation_ratio": Kind(interval=False, null="mean", model_error=lambda n: 0.01 + 0.1 / n),
    "participation_ratio_split": Kind(interval=False, null="reciprocal"),
    "effective_rank": Kind(interval=False, null="simulated"),
    "rankme": Kind(interval=False, null="simulated"),
    "stable_rank": Kind(interval=False, null="simulated"),
    "top_share": Kind(interval=False, null="simulated"),
    # the law's clouds have one vector a sequence; test_within.py holds these two nulls
    "intra_similarity": Kind(interval=True, null="mean"),
    "rank_residual": Kind(interval=True, null="mean"),
    "not_finite": Kind(interval=False, null="mean"),
    "zero_vectors": Kind(interval=False, null="mean"),
}


def close(got: float, expected: float, relative: float = RELATIVE, absolute: float = ABSOLUTE) -> bool:
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    return abs(got - expected) <= absolute + relative * abs(expected)


def reading(measure: Measure, cloud: Cloud, parts: int = 2) -> Reading:
    return measure.read(measure.stat.of(cloud.seen(), parts))


def defined(measure: Measure, cloud: Cloud) -> float:
    """The naive definition, of the vectors that are finite (of all, where those are what it counts)."""
    used = cloud if measure.name == "not_finite" else cloud.finite()
    given = {"points": used.points, "sequence": used.label, "half": used.half}
    return measure.definition(
        **{name: given[name] for name in inspect.signature(measure.definition).parameters}
    )


def agrees_with_definition(measure: Measure, cloud: Cloud) -> None:
    got, expected = reading(measure, cloud).value, defined(measure, cloud)
    assert close(got, expected), f"{measure.name} reads {got!r}, its definition says {expected!r}"


def within_bounds(measure: Measure, cloud: Cloud) -> None:
    """The value, the null and the interval lie within the bounds; what cannot be had is NaN with a reason."""
    found = reading(measure, cloud)
    low, high = measure.bounds
    if measure.ranklike:
        high = min(len(cloud.points), cloud.points.shape[1])
    for name in ("value", "null", "low", "high"):
        number = getattr(found, name)
        inside = low - MERGED <= number <= high * (1 + MERGED) + MERGED
        assert math.isnan(number) or inside, f"{name} of {measure.name}: {number!r} not in [{low}, {high}]"
    assert math.isnan(found.low) == math.isnan(found.high)
    if not math.isnan(found.low):
        assert found.low <= found.value + MERGED and found.value <= found.high + MERGED
    assert not math.isnan(found.value) or found.note, f"{measure.name} is NaN and does not say why"


def merged_as_whole(measure: Measure, cloud: Cloud) -> None:
    """Read from records merged out of batches: the same number, null and interval."""
    batches = [measure.stat.of(cloud.take([s]).seen(), 2) for s in reversed(range(len(cloud.key)))]
    merged = measure.read(reduce(lambda one, other: one.merge(other), batches))
    whole = reading(measure, cloud)
    for name in ("value", "null", "low", "high"):
        one, other = getattr(merged, name), getattr(whole, name)
        assert close(one, other, MERGED, MERGED), f"{name} of {measure.name}: {one!r} merged, {other!r} whole"
    assert (merged.n, merged.note) == (whole.n, whole.note)


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "rotation": lambda points: points @ rotation(points.shape[1], 5),
    "scale": lambda points: points * 3.7,
    "shift": lambda points: points + torch.linspace(1, 2, points.shape[1], dtype=points.dtype),
}


def witness() -> Cloud:
    """A cloud on which everything that may change does: drifted along one axis, uneven, with a zero row."""
    points = gaussian(80, 6, 30) * torch.tensor([4.0, 2.0, 1.0, 1.0, 0.5, 0.5], dtype=torch.float64)
    points[:, 0] += 6
    points[3] = 0
    points[5, 2] = math.nan
    return cloud(points, [8] * 10)


def invariant_as_declared(measure: Measure, cloud: Cloud) -> None:
    """What a measure declares to leave it alone does; what it does not declare, changes it."""
    before = reading(measure, cloud)
    for name, change in CHANGES.items():
        after = reading(measure, cloud.changed(change))
        if name in measure.unchanged_by:
            assert close(after.value, before.value), f"{name} changes {measure.name}: {before} to {after}"
        else:
            moved = abs(after.value - before.value) > 1e-3 * max(1, abs(before.value))
            assert moved, f"{name} is not declared to leave {measure.name} alone, and does"


def any_dtype(measure: Measure, cloud: Cloud) -> None:
    """Vectors of every dtype are summed as the numbers they are."""
    for dtype in DTYPES:
        rounded = cloud.changed(lambda points, to=dtype: points.to(to))
        agrees_with_definition(measure, rounded)
        exact = reading(measure, rounded.changed(Tensor.double)).value
        assert close(reading(measure, rounded).value, exact, MERGED, MERGED), f"{measure.name} in {dtype}"


def leaves_out_not_finite(measure: Measure, cloud: Cloud) -> None:
    """NaN and Inf are counted and never averaged in: the reading is that of the vectors that are left."""
    bad = cloud.points.clone()
    bad[1, 0], bad[4, -1], bad[-2] = math.nan, math.inf, -math.inf
    found = reading(measure, cloud.changed(lambda _: bad))
    if measure.name == "not_finite":
        assert (found.value, found.n) == (3, len(bad))
        return
    expected = reading(measure, Cloud(bad, cloud.sequence, cloud.key).finite())
    for name in ("value", "null", "low", "high"):
        assert close(getattr(found, name), getattr(expected, name), MERGED, MERGED), f"{measure.name}: {name}"
    assert found.n == expected.n == len(bad) - 3
