"""Readings of a sample of the vectors: how evenly they fill the sphere, their dimension, their clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import torch
from scipy import special
from torch import Tensor

from isoscope.geometry import clusters, cosine, neighbours
from isoscope.kernels.clusters import cluster_cosine
from isoscope.kernels.uniformity import uniformity
from isoscope.measures.base import Measure, undefined
from isoscope.measures.null import Dependence, draws, expected_of_clouds, isotropic_clouds
from isoscope.measures.partition import sampled
from isoscope.results.reading import Reading
from isoscope.stats.centre import Centre
from isoscope.stats.reservoir import Reservoir

PAIRS = 4096  # pairs of alike vectors drawn for the null of the uniformity
_NO_INTERVAL = "none: neighbours are not means over sequences"


def _uniformity(record: Reservoir, centre: Centre) -> Reading:
    value, (n, width) = uniformity(record.points), record.points.shape
    if math.isnan(value):
        return undefined(n, "needs 2 vectors that are not zero")
    dependence = Dependence.of(centre.sums)
    apart, inside = float(special.hyp0f1(width / 2, 4.0)), dependence.pairs
    mean = (1 - inside) * apart + inside * kernel_of_alike(width, dependence.alike) if inside else apart
    return Reading(value, n, math.log(mean) - 4, note=sampled(record))


def kernel_of_alike(width: int, alike: float) -> float:
    """The mean of exp(4 cos(x, y)) of isotropic Gaussian vectors x and y with this correlation."""
    random = np.random.default_rng(width)
    own = math.sqrt(1 - alike**2)
    along = alike * np.sqrt(random.chisquare(width, PAIRS)) + own * random.standard_normal(PAIRS)
    across = own**2 * random.gamma((width - 1) / 2, 2, PAIRS)
    return float(np.exp(4 * along / np.sqrt(along**2 + across)).mean())


def _of_neighbours(reading: Callable[[Tensor], float]) -> Callable[[Reservoir, Centre], Reading]:
    def read(record: Reservoir, centre: Centre) -> Reading:
        near = _nearest(record)
        n, width = len(near), record.points.shape[1]
        if n <= neighbours.NEIGHBOURS:
            return undefined(n, f"needs more than {neighbours.NEIGHBOURS} different vectors")
        if math.isnan(value := reading(near)):
            return undefined(n, "all neighbours are equally far")
        dependence, many = Dependence.of(centre.sums), max(int(record.count), n)
        found = (
            _dependent_neighbours(n, many, width, dependence)
            if dependence.alike
            else _isotropic_neighbours(n, width)
        )
        return Reading(value, n, float(np.mean([reading(each) for each in found])), note=sampled(record))

    return read


@lru_cache(maxsize=4)
def _nearest(record: Reservoir) -> Tensor:
    return neighbours.nearest(record.points).cpu()


@lru_cache(maxsize=64)
def _isotropic_neighbours(n: int, width: int) -> tuple[Tensor, ...]:
    return tuple(neighbours.nearest(cloud) for cloud in isotropic_clouds(n, width))


@lru_cache(maxsize=4)
def _dependent_neighbours(n: int, many: int, width: int, dependence: Dependence) -> tuple[Tensor, ...]:
    """Distances to the nearest in isotropic clouds of n vectors, sampled from `many` that are so dependent.

    A vector is √ρ·a + √(1 − ρ)·e with a common to its sequence, so ‖x_i − x_j‖² follows for every ρ from
    three matrices, which are drawn once.
    """
    alike, found = min(dependence.alike, 1 - neighbours.SAME), []
    sequences = max(1, round(many / dependence.length(many)))
    for common, own, cross in _distances(n, many, sequences, width):
        squared = alike * common + (1 - alike) * own + 2 * math.sqrt(alike * (1 - alike)) * cross
        squared.fill_diagonal_(math.inf)
        near = squared.topk(neighbours.NEIGHBOURS, largest=False, sorted=True).values
        found.append(near.clamp_min(0).sqrt().double())
    return tuple(found)


@lru_cache(maxsize=1)
def _distances(n: int, many: int, sequences: int, width: int) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
    """‖a_i − a_j‖², ‖e_i − e_j‖² and (a_i − a_j)·(e_i − e_j) of some clouds, [n, n] each."""
    random, places = torch.Generator().manual_seed(1_000_003 * n + width), np.random.default_rng([n, width])
    found = []
    for _ in range(draws(n, width)):
        label = torch.from_numpy(places.choice(many, n, replace=False) % sequences)
        common = torch.randn(sequences, width, generator=random)[label]
        own = torch.randn(n, width, generator=random)
        found.append((_apart(common, common), _apart(own, own), _apart(common, own)))
    return tuple(found)


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """(x_i − x_j)·(y_i − y_j), [n, n]."""
    inner, product = (one * other).sum(1), one @ other.T
    return inner[:, None] + inner - product - product.T


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
    stats=(Reservoir, Centre),
    interval=_NO_INTERVAL,
    bounds=(0.0, math.inf),
    unchanged_by=frozenset({"rotation", "scale", "shift"}),
    null="simulated for an isotropic Gaussian cloud of the same n and d, in sequences of equal length with "
    "the cloud's mean correlation",
)

MEASURES = (
    _measure(
        name="uniformity",
        read=_uniformity,
        definition=cosine.uniformity,
        title="uniformity",
        formula="log mean_{i≠j} exp(−2‖û_i − û_j‖²)",
        says="How evenly the directions fill the sphere: near −4 when they do, 0 when all point one way.",
        misleads="Vectors of one sequence are alike and lift it; see the null. One tight cluster weighs more "
        "than a cone.",
        null="log ₀F₁(d/2; 4) − 4, its value for random directions; pairs inside a sequence enter with their "
        "mean correlation",
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
        misleads="In many dimensions it reads far below d even for a round cloud; see the null. Where "
        "vectors change little from one position to the next, it reads the course of the sequence, far below "
        "its null.",
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
        stats=(Reservoir,),
        title="mean cosine inside centred clusters",
        formula="mean of cos(x_i − c, x_j − c) over pairs of one cluster with mean c, k-means, k = 8",
        says="What is left of the anisotropy when each cluster's own mean is taken away: near 0 where the "
        "cone is a matter of where clusters lie.",
        misleads="Taking means away lowers any cosine; compare it with its null, not with the mean cosine.",
        interval="none: clusters are found, not given",
        null="simulated for an isotropic Gaussian cloud of the same n and d, of independent vectors",
        source="Cai et al. 2021",
        bounds=(-1.0, 1.0),
        extra=True,
    ),
)
