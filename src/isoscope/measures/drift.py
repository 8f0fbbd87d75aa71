"""Readings of the cloud's centre: how far it lies from the origin.

‖x̄‖ is never zero, even when the true mean is. So its null is not 0 but the noise of the mean, and its
interval is that of the unbiased ‖μ‖² over pairs from different sequences, taken to the root and
stretched to the value itself where noise lifts that above it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from torch import Tensor

from isoscope.geometry import drift
from isoscope.measures.base import Measure, Reading, undefined
from isoscope.stats.centre import Centre
from isoscope.stats.intervals import FEW, enough, jackknife, jackknife_of_square

_INTERVAL = "jackknife over groups of whole sequences of the unbiased square, from 8 sequences on"


def read_drift(record: Centre) -> Reading:
    """‖x̄‖, with its null and interval."""
    return _read(record, scale=1.0, scale_without=None)


def read_relative_drift(record: Centre) -> Reading:
    """‖x̄‖/mean ‖x‖, with its null and interval."""
    count, norms = record.sums.count, record.norms
    if record.sums.n < 1:
        return undefined(0, "no vector")
    if float(norms.sum()) == 0:
        return undefined(record.sums.n, "every vector is zero")
    without = (norms.sum() - norms) / (count.sum() - count)
    reading = _read(record, scale=float(norms.sum() / count.sum()), scale_without=without)
    return replace(reading, high=min(reading.high, 1.0))


def _read(record: Centre, *, scale: float, scale_without: Tensor | None) -> Reading:
    sums = record.sums
    if sums.n < 1:
        return undefined(0, "no vector")
    value = float(sums.mean.norm()) / scale
    null = math.sqrt(sums.noise()) / scale
    if not enough(sums.sequences):
        return Reading(value, sums.n, null, note=FEW)
    without, along = sums.between_without(), sums.along_without()
    if scale_without is not None:
        without, along = without / scale_without**2, along / scale_without
    ends = jackknife_of_square(sums.between() / scale**2, without, value, along, sums.count)
    low, high = (math.sqrt(max(end, 0.0)) for end in ends)
    return Reading(value, sums.n, null, min(low, value), max(high, value))


def _mean_norm(record: Centre) -> Reading:
    count, norms, n = record.sums.count, record.norms, record.sums.n
    if n < 1:
        return undefined(0, "no vector")
    value = float(norms.sum() / count.sum())
    if not enough(record.sums.sequences):
        return Reading(value, n, note=FEW)
    without = (norms.sum() - norms) / (count.sum() - count)
    low, high = jackknife(value, without, count)
    return Reading(value, n, low=max(low, 0.0), high=high)


MEASURES = (
    Measure(
        name="drift",
        family="drift",
        stats=(Centre,),
        read=read_drift,
        definition=drift.drift,
        title="drift",
        formula="‖x̄‖",
        says="How far the cloud's centre lies from the origin, in the units of the vectors.",
        misleads="It grows with the norms, so compare layers by the relative drift. Noise alone makes it "
        "positive: read it against its null.",
        null="√E‖x̄‖² if the true mean were zero, from the spread between sequences",
        interval=_INTERVAL,
        source="Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143",
        bounds=(0.0, math.inf),
        unchanged_by=frozenset({"rotation"}),
    ),
    Measure(
        name="relative_drift",
        family="drift",
        stats=(Centre,),
        read=read_relative_drift,
        definition=drift.relative_drift,
        title="relative drift",
        formula="‖x̄‖ / mean ‖x‖",
        says="Which part of a typical vector is common to all: 0 when the cloud is centred, 1 when all "
        "vectors are the same.",
        misleads="When norms are equal its square is about the mean cosine: the two are no independent "
        "evidence of each other.",
        null="1/√n, n the effective number of vectors",
        interval=_INTERVAL,
        source="Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143",
        bounds=(0.0, 1.0),
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
    Measure(
        name="mean_norm",
        family="drift",
        stats=(Centre,),
        read=_mean_norm,
        definition=drift.mean_norm,
        title="mean norm",
        formula="mean ‖x‖",
        says="How long the vectors are; how the residual stream grows from layer to layer.",
        misleads="A few massive vectors can carry it.",
        null="none: a length has no isotropic value",
        interval="jackknife over groups of whole sequences, from 8 sequences on",
        source="Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143",
        bounds=(0.0, math.inf),
        unchanged_by=frozenset({"rotation"}),
    ),
)
