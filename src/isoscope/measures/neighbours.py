"""Readings of a sample of the vectors: how evenly they fill the sphere, their dimension, their clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy import special
from torch import Tensor

from isoscope.geometry import clusters, cosine, neighbours
from isoscope.kernels.clusters import cluster_cosine
from isoscope.kernels.uniformity import uniformity
from isoscope.measures.base import Measure, undefined
from isoscope.measures.null import expected_of_clouds, isotropic_clouds
from isoscope.measures.partition import sampled
from isoscope.results.reading import Reading
from isoscope.stats.reservoir import Reservoir

_NO_INTERVAL = "none: neighbours are not means over sequences"


def _uniformity(record: Reservoir) -> Reading:
    value, (n, width) = uniformity(record.points), record.points.shape
    if math.isnan(value):
        return undefined(n, "needs 2 vectors that are not zero")
    null = -4 + math.log(float(special.hyp0f1(width / 2, 4.0)))
    return Reading(value, n, null, note=sampled(record))


def _of_neighbours(reading: Callable[[Tensor], float]) -> Callable[[Reservoir], Reading]:
    def read(record: Reservoir) -> Reading:
        near = _nearest(record)
        n, width = len(near), record.points.shape[1]
        if n <= neighbours.NEIGHBOURS:
            return undefined(n, f"needs more than {neighbours.NEIGHBOURS} different vectors")
        if math.isnan(value := reading(near)):
            return undefined(n, "all neighbours are equally far")
        nulls = [reading(cloud) for cloud in _isotropic_neighbours(n, width)]
        return Reading(value, n, float(np.mean(nulls)), note=sampled(record))

    return read


@lru_cache(maxsize=4)
def _nearest(record: Reservoir) -> Tensor:
    return neighbours.nearest(record.points).cpu()


@lru_cache(maxsize=64)
def _isotropic_neighbours(n: int, width: int) -> tuple[Tensor, ...]:
    return tuple(neighbours.nearest(cloud) for cloud in isotropic_clouds(n, width))


def _cluster_cosine(record: Reservoir) -> Reading:
    n, width = record.points.shape
    if n < clusters.LEAST:
        return undefined(n, f"needs {clusters.LEAST} vectors")
    if math.isnan(value := cluster_cosine(record.points)):
        return undefined(n, "needs clusters of 2 different vectors")
    return Reading(value, n, expected_of_clouds(cluster_cosine, n, width), note=sampled(record))


_measure = partial(
    Measure,
    family="sample",
    stats=(Reservoir,),
    interval=_NO_INTERVAL,
    bounds=(0.0, math.inf),
    unchanged_by=frozenset({"rotation", "scale", "shift"}),
    null="simulated for an isotropic Gaussian cloud of the same n and d",
)

MEASURES = (
    _measure(
        name="uniformity",
        read=_uniformity,
        definition=cosine.uniformity,
        title="uniformity",
        formula="log mean_{i≠j} exp(−2‖û_i − û_j‖²)",
        says="How evenly the directions fill the sphere: near −4 when they do, 0 when all point one way.",
        misleads="Vectors of one sequence are alike and lift it. One tight cluster weighs more than a cone.",
        null="log ₀F₁(d/2; 4) − 4, its value for random directions",
        interval="none: a logarithm of a mean over pairs of a sample",
        source="Wang & Isola 2020",
        bounds=(-8.0, 0.0),
        unchanged_by=frozenset({"rotation", "scale"}),
    ),
    _measure(
        name="intrinsic_dimension",
        read=_of_neighbours(neighbours.two_nearest),
        definition=neighbours.intrinsic_dimension,
        title="intrinsic dimension (TwoNN)",
        formula="slope of −log(1 − F(μ)) against log μ, μ = r₂/r₁",
        says="How many dimensions the cloud has at the scale of its nearest neighbours.",
        misleads="In many dimensions it reads far below d even for a round cloud; see the null.",
        source="Facco et al. 2017",
        extra=True,
    ),
    _measure(
        name="local_dimension",
        read=_of_neighbours(neighbours.by_neighbours),
        definition=neighbours.local_dimension,
        title="local intrinsic dimension",
        formula="mean over vectors of −[1/k Σ log(r_i/r_k)]⁻¹, k = 20",
        says="How many dimensions the cloud has around a typical vector.",
        misleads="As the intrinsic dimension; and 20 neighbours reach far where vectors are few.",
        source="Levina & Bickel 2004; Amsaleg et al. 2015",
        extra=True,
    ),
    _measure(
        name="cluster_cosine",
        read=_cluster_cosine,
        definition=clusters.cluster_cosine,
        title="mean cosine inside centred clusters",
        formula="mean of cos(x_i − c, x_j − c) over pairs of one cluster with mean c, k-means, k = 8",
        says="What is left of the anisotropy when each cluster's own mean is taken away: near 0 where the "
        "cone is a matter of where clusters lie.",
        misleads="Taking means away lowers any cosine; compare it with its null, not with the mean cosine.",
        interval="none: clusters are found, not given",
        source="Cai et al. 2021",
        bounds=(-1.0, 1.0),
        extra=True,
    ),
)
