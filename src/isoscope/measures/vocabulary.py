"""Readings of a vocabulary matrix that only make sense there; the others are those of any cloud.

I(W) in float32 is kept to compare with published numbers, not to be believed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isoscope.geometry import partition, spectrum
from isoscope.kernels.partition import partition_isotropy
from isoscope.measures.base import Measure, Reading, undefined
from isoscope.measures.null import expected
from isoscope.measures.partition import partition_null
from isoscope.stats.moments import Moments
from isoscope.stats.reservoir import Reservoir
from isoscope.stats.weights import AllRows


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


def _float32(record: Reservoir | AllRows) -> Reading:
    points = record.points.cpu()
    if not len(points):
        return undefined(0, "no vector")
    value = partition_isotropy(points, signs="lapack", dtype=torch.float32)
    return Reading(value, len(points), partition_null(record)[1])


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
        null="simulated for an isotropic Gaussian cloud of the same n and d",
        interval="none: weights are not a sample",
        source="Godey, de la Clergerie & Sagot 2024, arXiv 2404.07647",
        bounds=(0.0, math.inf),
        unchanged_by=frozenset({"rotation", "scale"}),
        at="vocabulary",
    ),
)
