"""Laws that hold on average: nulls on isotropic clouds, intervals on dependent sequences.

Every simulation has a fixed seed, so a test passes or fails for good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from isoscope.data.keys import content_keys
from isoscope.measures.base import Measure
from isoscope.measures.null import draws, isotropic_spectra
from isoscope.results.reading import Reading
from isoscope.stats.seen import Vectors
from tests.laws.law_clouds import Records
from tests.laws.law_measures import KINDS, read

Readings = dict[str, list[Reading]]


def read_all(
    measures: Iterable[Measure], seen: Vectors, into: Readings, elsewhere: Vectors | None = None
) -> None:
    records, there = Records([seen]), Records([elsewhere]) if elsewhere else None
    for measure in measures:
        into.setdefault(measure.name, []).append(read(measure, records, there))


def isotropic_readings(measures: Iterable[Measure], n: int, width: int, times: int) -> Readings:
    """Readings of `times` Gaussian clouds whose vectors stand alone."""
    random = torch.Generator().manual_seed(1000 * n + width)
    found: Readings = {}
    for _ in range(times):
        points = torch.randn(n, width, generator=random)
        key, token = content_keys(points, 0), (torch.arange(n) + 1).log2().long()
        other = torch.randn(n, 3, generator=random)
        read_all(measures, Vectors.see(points, None, key, token=token), found, Vectors.see(other, None, key))
    return found


def null_holds(name: str, readings: list[Reading], n: int, width: int) -> None:
    """The mean of the readings is the reported null, to 4 standard errors and the declared model error."""
    kind = KINDS[name]
    value, null = (np.array([getattr(reading, part) for reading in readings]) for part in ("value", "null"))
    known = ~np.isnan(value)
    value, null = value[known], null[known]
    if kind.null == "none":
        assert np.isnan(null).all(), f"{name} is said to have no null"
        return
    if len(value) < 20:
        return  # undefined for clouds of this size
    assert np.isfinite(null).all(), f"{name} is defined and its null is not"
    if kind.null == "square":
        value, null = value**2, null**2
    if kind.null == "reciprocal":
        value, null = 1 / value, 1 / null
    error = np.std(value - null) / math.sqrt(len(value))
    if kind.null == "count":  # of rare events perhaps none is seen
        error = math.hypot(error, math.sqrt(null.mean() / len(value)))
    if kind.null == "simulated":
        error = math.hypot(error, np.std(value) / math.sqrt(len(isotropic_spectra(n, width))))
        error = math.hypot(error, np.std(value) / math.sqrt(draws(n, width)))
    apart = abs(value.mean() - null.mean())
    allowed = 4 * error + kind.model_error(n) * abs(null.mean()) + 1e-6
    assert apart <= allowed, (
        f"{name} at {n} × {width}: mean {value.mean():.5f}, null {null.mean():.5f}, {allowed:.5f} allowed"
    )


@dataclass(frozen=True)
class Stream:
    """x = drift·e₀ + spread·(a_s + e), a_s shared by a sequence: half the variance is the sequence's.

    `lengths` is "even" (1 to 15 vectors, all as likely) or "ragged" (log-normal, σ = 1: a few sequences hold
    most of the vectors).
    """

    drift: float
    spread: tuple[float, ...]
    lengths: str

    def draw(self, sequences: int, random: torch.Generator) -> Vectors:
        if self.lengths == "even":
            sizes = torch.randint(1, 16, (sequences,), generator=random)
        else:
            sizes = torch.empty(sequences).log_normal_(2, 1, generator=random).long().clamp(1, 200)
        label = torch.repeat_interleave(torch.arange(sequences), sizes)
        width = len(self.spread)
        shared = torch.randn(sequences, width, generator=random, dtype=torch.float64)
        own = torch.randn(len(label), width, generator=random, dtype=torch.float64)
        key = torch.randint(0, 2**62, (sequences,), generator=random)
        return Vectors.see(self._place(shared[label] + own), label, key)

    def _place(self, noise: Tensor) -> Tensor:
        points = noise * torch.tensor(self.spread, dtype=torch.float64)
        points[:, 0] += self.drift
        return points

    def truth(self) -> Mapping[str, float]:
        """What the intervals are to cover, from 400,000 independent vectors or in closed form."""
        return {**_truth(self.drift, self.spread), **_truth_within(self)}


@cache
def _truth(drift: float, spread: tuple[float, ...]) -> dict[str, float]:
    random = torch.Generator().manual_seed(7)
    noise = torch.randn(400_000, len(spread), generator=random, dtype=torch.float64) * math.sqrt(2)
    points = Stream(drift, spread, "even")._place(noise)
    norms = points.norm(dim=1)
    along = float((points[:, 0] / norms).mean()) if drift else 0.0  # by symmetry the mean direction is e₀
    return {
        "mean_cosine_between": along**2,
        "drift": drift,
        "mean_norm": float(norms.mean()),
        "relative_drift": drift / float(norms.mean()),
    }


@cache
def _truth_within(stream: Stream) -> dict[str, float]:
    """The mean over the sequences of two vectors or more, of 40,000, straight from the definitions."""
    seen = stream.draw(40_000, torch.Generator().manual_seed(8))
    points, label = seen.points, seen.sequence
    assert label is not None
    count = torch.bincount(label).double()

    def by_sequence(values: Tensor) -> Tensor:
        return values.new_zeros(len(count), *values.shape[1:]).index_add_(0, label, values)

    total = by_sequence(points)
    along = torch.cosine_similarity(points, total[label])
    apart = (points - (total / count[:, None])[label]).square().sum(1)
    numbers = {
        "intra_similarity": by_sequence(along) / count,
        "rank_residual": (by_sequence(apart) / by_sequence(points.square().sum(1))).sqrt(),
    }
    found = {name: float(number[count > 1].mean()) for name, number in numbers.items()}
    between = _truth(stream.drift, stream.spread)["mean_cosine_between"]
    return found | {"intra_similarity_adjusted": found["intra_similarity"] - between}


def simulate(measures: Iterable[Measure], stream: Stream, sequences: int, times: int) -> Readings:
    chosen = tuple(measures)
    random = torch.Generator().manual_seed(sequences)
    found: Readings = {}
    for _ in range(times):
        read_all(chosen, stream.draw(sequences, random), found)
    return found


def coverage(readings: Iterable[Reading], truth: float) -> float:
    inside = [reading.low <= truth <= reading.high for reading in readings]
    return sum(inside) / len(inside)


def covers(readings: Readings, truth: Mapping[str, float], least: float = 0.90, most: float = 1.0) -> None:
    """Every interval covers the truth at about its nominal .95.

    A rate below `least` counts when it is so by two standard errors of the simulation (.865 of 300).
    """
    for name, found in readings.items():
        rate, error = coverage(found, truth[name]), math.sqrt(least * (1 - least) / len(found))
        inside = least - 2 * error <= rate <= most
        assert inside, f"{name} covers {rate:.3f}, not {least} to {most}; {len(found)} streams"


def width_of(readings: list[Reading]) -> float:
    return float(np.mean([reading.high - reading.low for reading in readings]))
