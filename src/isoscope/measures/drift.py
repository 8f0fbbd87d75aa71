"""Readings of the cloud's centre: how far it lies from the origin.

‖x̄‖ is never zero, even when the true mean is. So its null is not 0 but the noise of the mean, and its
interval is that of the unbiased ‖μ‖² over pairs from different sequences, taken to the root and
stretched to the value itself where noise lifts that above it.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from torch import Tensor

from isoscope.geometry import drift
from isoscope.measures.base import Measure, side_by_side, undefined
from isoscope.results.reading import Influence, Reading
from isoscope.stats.centre import Centre
from isoscope.stats.intervals import Array, left, quiet
from isoscope.stats.sums import LeftOut, Sums

_INTERVAL = "jackknife over groups of whole documents of the unbiased square, from 8 on"


def read_drift(record: Centre) -> Reading:
    """‖x̄‖, with its null and interval."""
    return drifts(record.sums)[0]


def read_relative_drift(record: Centre) -> Reading:
    """‖x̄‖/mean ‖x‖, with its null and interval."""
    return relative_drifts(record.sums, record.norms)[0]


def drifts(sums: Sums) -> tuple[Reading, ...]:
    """‖x̄‖ of each of the clouds side by side."""
    return _read(sums.left_out, np.ones_like(sums.left_out.count), math.inf)


@quiet
def relative_drifts(sums: Sums, norms: Tensor) -> tuple[Reading, ...]:
    """‖x̄‖/mean ‖x‖ of each of the clouds side by side, given Σ‖x‖ by group."""
    return _read(sums.left_out, left(norms) / sums.left_out.count, 1.0)


@quiet
def _read(of: LeftOut, scale: Array, most: float) -> tuple[Reading, ...]:
    """‖x̄‖ over a scale, which is known with each group left out as well: [1 + G, m]."""
    zero = scale[0] == 0
    value = np.where(zero, math.nan, of.length / scale[0])
    ends = of.groups.interval_of_square(of.between / scale**2, of.along / scale)
    low, high = (np.where(of.enough, np.sqrt(np.maximum(end, 0)), math.nan) for end in ends)
    clear = value.ndim == 0 and low > 0  # nearer to its noise a length is no smooth function of the sums
    flags = (np.ravel(each).tolist() for each in (of.n < 1, zero, of.enough))
    return side_by_side(
        value,
        of.n,
        null=np.sqrt(of.noise) / scale[0],
        low=np.minimum(low, value),
        high=np.minimum(np.maximum(high, value), most),
        notes=[
            "no vector" if none else "every vector is zero" if nothing else "" if enough else of.few
            for none, nothing, enough in zip(*flags, strict=True)
        ],
        influence=Influence.of(*of.groups.moves(np.sqrt(np.maximum(of.between, 0)) / scale))
        if clear
        else None,
    )


@quiet
def _mean_norm(record: Centre) -> Reading:
    of = record.sums.left_out
    if of.n < 1:
        return undefined(0, "no vector")
    found = left(record.norms) / of.count
    if not of.enough:
        return Reading(float(found[0]), int(of.n), note=of.few)
    low, high = of.groups.interval(found)
    moved = Influence.of(*of.groups.moves(found))
    return Reading(float(found[0]), int(of.n), low=max(float(low), 0.0), high=float(high), influence=moved)


_measure = partial(
    Measure,
    family="drift",
    stats=(Centre,),
    interval=_INTERVAL,
    source="Godey, de la Clergerie & Sagot 2024, arXiv 2401.12143",
    bounds=(0.0, math.inf),
    unchanged_by=frozenset({"rotation"}),
)

MEASURES = (
    _measure(
        name="drift",
        read=read_drift,
        definition=drift.drift,
        title="drift",
        formula="‖x̄‖",
        says="How far the cloud's centre lies from the origin, in the units of the vectors.",
        misleads="It grows with the norms, so compare layers by the relative drift. Noise alone makes it "
        "positive: read it against its null.",
        null="√E‖x̄‖² if the true mean were zero, from the spread between sequences or documents",
    ),
    _measure(
        name="relative_drift",
        read=read_relative_drift,
        definition=drift.relative_drift,
        title="relative drift",
        formula="‖x̄‖ / mean ‖x‖",
        says="Which part of a typical vector is common to all: 0 when the cloud is centred, 1 when all "
        "vectors are the same.",
        misleads="When norms are equal its square is about the mean cosine: the two are no independent "
        "evidence of each other.",
        null="1/√n, n the effective number of vectors",
        bounds=(0.0, 1.0),
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
    _measure(
        name="mean_norm",
        read=_mean_norm,
        definition=drift.mean_norm,
        title="mean norm",
        formula="mean ‖x‖",
        says="How long the vectors are; how the residual stream grows from layer to layer.",
        misleads="A few massive vectors can carry it.",
        null="none: a length has no isotropic value",
        interval="jackknife over groups of whole documents, from 8 on",
    ),
)
