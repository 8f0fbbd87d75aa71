"""Readings of a vocabulary matrix that only make sense there; the others are those of any cloud.

I(W) in float32 is kept to compare with published numbers, not to be believed. A matrix that was centred, or
lost its top directions, is read against random rows that underwent the same: `in_form`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import torch
from scipy import special
from torch import Tensor

from isoscope.geometry import partition, spectrum
from isoscope.kernels.partition import partition_isotropy
from isoscope.measures.base import Measure, undefined
from isoscope.measures.null import expected, isotropic_spectra
from isoscope.measures.partition import Points, partition_null, second_order
from isoscope.measures.spectrum import (
    entropic_rank,
    exponent,
    participation,
    shrunk_isoscore,
    stable_rank,
    top_share,
)
from isoscope.results.reading import Reading
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir


def _uneven(values: Tensor, rank: int) -> float:
    """KL of √values/Σ√values against the uniform distribution over `rank` of them."""
    return math.log(rank) - math.log(spectrum.exp_entropy(values.sqrt()))


def _singular_entropy(record: Moments) -> Reading:
    width = len(record.extent)
    rank = min(record.n, width)
    if record.n < 1 or float(record.extent.sum()) == 0:
        return undefined(record.n, "no vector that is not zero")
    null = expected(lambda values: _uneven(values, rank), record.n, width)
    return Reading(max(0.0, _uneven(record.extent, rank)), record.n, null)


def _float32(record: Points) -> Reading:
    points = record.points.cpu()
    if not len(points):
        return undefined(0, "no vector")
    value = partition_isotropy(points, signs="lapack", dtype=torch.float32)
    return Reading(value, len(points), partition_null(record)[1])


def in_form(name: str, reading: Reading, record: Moments, removed: int) -> Reading:
    """The reading of a matrix that was centred and lost `removed` top directions, with the null of that form.

    The null is the mean over isotropic clouds that were centred and lost as many: of n − 1 vectors, without
    their largest eigenvalues. The singular entropy is over the directions that are left, in value and null.
    Partition isotropy of whole rows has its null already (`FormRows`). The mean cosine keeps 0, though of
    centred rows it is −1/(n − 1); readings of neighbours and clusters keep that of d dimensions.
    """
    n, width = record.n, len(record.extent)
    if math.isnan(reading.value) or n < 3:
        return reading
    spectra = [_without_largest(values, removed) for values in isotropic_spectra(n - 1, width)]
    if name == "singular_entropy":
        left = max(1, min(n - 1, width) - removed)
        value, null = _uneven(record.extent, left), fmean(_uneven(values, left) for values in spectra)
        return replace(reading, value=max(0.0, value), null=null)
    if name in _OF_SPECTRUM:
        return replace(reading, null=fmean(_OF_SPECTRUM[name](values, width) for values in spectra))
    if name == "partition_isotropy_second":
        size = float(record.extent.sum())
        return replace(
            reading, null=fmean(second_order(n, 0.0, values * (size / values.sum())) for values in spectra)
        )
    if name == "cosine_variance":  # Σcos² is n²/PR, in whole clouds as in those that lost directions
        ratio = fmean(map(participation, spectra)) / fmean(
            map(participation, isotropic_spectra(n - 1, width))
        )
        return replace(reading, null=reading.null / ratio)
    return replace(reading, null=_BY_FORMULA[name](n, width - removed)) if name in _BY_FORMULA else reading


def _without_largest(values: Tensor, count: int) -> Tensor:
    """Eigenvalues that ascend, the last `count` gone: zeros take their place in front."""
    return torch.cat([values.new_zeros(count), values[: len(values) - count]])


_OF_SPECTRUM: dict[str, Callable[[Tensor, int], float]] = {  # of the eigenvalues, and the width of the matrix
    "participation_ratio": lambda values, width: participation(values),
    "isoscore": lambda values, width: (participation(values) - 1) / (width - 1),
    "isoscore_star": lambda values, width: shrunk_isoscore(participation(values), width),
    "effective_rank": lambda values, width: entropic_rank(values),
    "rankme": lambda values, width: entropic_rank(values),
    "stable_rank": lambda values, width: stable_rank(values),
    "top_share": lambda values, width: top_share(values),
    "spectral_exponent": lambda values, width: exponent(values),
}
_BY_FORMULA: dict[str, Callable[[int, int], float]] = {  # of n and the number of directions that are left
    "rogue_contribution": lambda n, left: -1 / ((n - 1) * left),
    "drift": lambda n, left: 0.0,
    "relative_drift": lambda n, left: 0.0,
    "participation_ratio_split": lambda n, left: float(left),
    "uniformity": lambda n, left: -4 - 4 / (n - 1) + math.log(float(special.hyp0f1(left / 2, 4.0))),
    "partition_isotropy_first": lambda n, left: 1.0,
}


MEASURES = (
    Measure(
        name="partition_isotropy_float32",
        family="partition",
        stats=(Reservoir,),
        read=_float32,
        definition=partition.partition_isotropy_float32,
        title="partition isotropy, as published",
        formula="min Z/max Z over the eigenvectors as LAPACK signs them, in float32",
        says="The number that published code prints, to compare with; the form with both signs is the one "
        "to read.",
        misleads="It depends on the scale of the rows, on signs that mean nothing and on the linear algebra "
        "library: another machine may print another number.",
        null="that of one sign: the same norms, random directions",
        interval="none: min and max over directions",
        source="Machina & Mercer 2024",
        bounds=(0.0, 1.0),
        unchanged_by=frozenset(),
        at="vocabulary",
    ),
    Measure(
        name="singular_entropy",
        family="spectrum",
        stats=(Moments,),
        read=_singular_entropy,
        definition=spectrum.singular_entropy,
        title="singular entropy",
        formula="KL(σ/Σσ ‖ uniform), σ the singular values of the matrix as it lies",
        says="How unevenly the matrix uses its directions: 0 when all alike, log d when there is one. The "
        "logarithm of d over RankMe.",
        misleads="A large mean alone raises it: see the centred matrix beside it.",
        null="simulated for an isotropic Gaussian cloud of the same n and d; of a matrix that was centred or "
        "lost its top directions, for one that underwent the same",
        interval="none: weights are not a sample",
        source="Godey, de la Clergerie & Sagot 2024, arXiv 2404.07647",
        bounds=(0.0, math.inf),
        unchanged_by=frozenset({"rotation", "scale"}),
        at="vocabulary",
    ),
)
