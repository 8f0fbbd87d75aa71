"""Readings of samples, types and pairs of layers against other people's code, closed forms and loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from isoscope import describe
from isoscope.geometry import alignment, neighbours, partition, types
from tests.laws.law_clouds import cloud, gaussian, words
from tests.laws.test_oracles import SHAPES, tilted, value


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_isoscore_star_is_the_isoscore_package_s(n, width):
    points = tilted(n, width).points
    target = torch.eye(width, dtype=torch.float64) * torch.cov(points.T).trace() / width
    package = pytest.importorskip("IsoScore.IsoScore", reason="needs IsoScore")
    theirs = float(package.istar().IsoScore_star(points.numpy(), target, 0.2))
    assert value("isoscore_star", tilted(n, width)) == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_uniformity_is_a_mean_over_scipy_s_distances(n, width):
    unit = tilted(n, width).points.numpy()
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    expected = math.log(np.exp(-2 * pdist(unit, "sqeuclidean")).mean())
    assert value("uniformity", tilted(n, width)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("n", "width"), [(80, 6), (300, 20), (500, 3)])
def test_dimensions_are_those_of_scikit_learn_s_neighbours(n, width):
    points = tilted(n, width).points.numpy()
    near = NearestNeighbors(n_neighbors=21, algorithm="brute").fit(points).kneighbors(points)[0][:, 1:]
    ratio = np.sort(near[:, 1] / near[:, 0])[: int(0.9 * n)]
    tail = -np.log(1 - np.arange(n) / n)[: int(0.9 * n)]
    slope = np.linalg.lstsq(np.log(ratio)[:, None], tail, rcond=None)[0][0]
    assert value("intrinsic_dimension", tilted(n, width)) == pytest.approx(slope, rel=1e-5)
    local = [-1 / np.mean([math.log(r / row[-1]) for r in row]) for row in near]
    assert value("local_dimension", tilted(n, width)) == pytest.approx(np.mean(local), rel=1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_dimensions_are_those_of_the_space_the_cloud_fills(dimension):
    """Uniform in a ball or cube the ratio r₂/r₁ is Pareto with the dimension for its shape."""
    random = np.random.default_rng(dimension)
    flat = random.uniform(size=(2000, dimension)) @ np.linalg.qr(random.normal(size=(12, 12)))[0][:dimension]
    assert value("intrinsic_dimension", cloud(torch.from_numpy(flat))) == pytest.approx(dimension, rel=0.1)
    assert value("local_dimension", cloud(torch.from_numpy(flat))) == pytest.approx(dimension, rel=0.25)


def test_vectors_that_occur_twice_count_once():
    points = gaussian(200, 4, 70)
    twice = torch.cat([points, points[:50]])
    for name in ("intrinsic_dimension", "local_dimension"):
        assert value(name, cloud(twice)) == pytest.approx(value(name, cloud(points)), rel=1e-9)


def test_far_off_clouds_have_the_same_neighbours():
    near = neighbours.nearest(gaussian(100, 5, 71))
    assert torch.allclose(
        neighbours.nearest(gaussian(100, 5, 71) + 1e6).sort(0)[0], near.sort(0)[0], rtol=1e-6
    )


def test_inside_clusters_the_cosine_is_a_loop_over_pairs_of_a_cluster():
    of = cloud(torch.cat([gaussian(40, 3, 72) + 9 * k for k in range(8)]))
    points = of.sampled(320).points.numpy()
    label = KMeans(8, n_init=1, random_state=0).fit_predict(points - points.mean(0))
    found = []
    for name in range(8):
        mine = points[label == name] - points[label == name].mean(0)
        found += list(1 - pdist(mine, "cosine"))
    assert value("cluster_cosine", of) == pytest.approx(np.mean(found), rel=1e-5)
    assert abs(value("cluster_cosine", of)) < 0.05 < 0.7 < value("mean_cosine", of)


@pytest.mark.parametrize("n", [4, 5, 30, 100])
def test_cka_is_a_ratio_of_unbiased_hsic(n):
    """Song et al. 2012, equation 5, in numpy."""

    def hsic(one, two):
        one, two = one * (1 - np.eye(n)), two * (1 - np.eye(n))
        ones = np.ones(n)
        cross = ones @ one @ ones * (ones @ two @ ones) / ((n - 1) * (n - 2))
        return (np.trace(one @ two) + cross - 2 / (n - 2) * ones @ one @ two @ ones) / (n * (n - 3))

    x, y = gaussian(n, 6, n).numpy() + 2, gaussian(n, 3, n + 1).numpy()
    y[:, 0] += x[:, 0]
    one, two = x @ x.T, y @ y.T
    expected = hsic(one, two) / math.sqrt(hsic(one, one) * hsic(two, two))
    assert alignment.cka(torch.from_numpy(x), torch.from_numpy(y)) == pytest.approx(expected, rel=1e-6)


def test_the_plain_cka_would_find_what_is_not_there():
    x, y = gaussian(60, 50, 73), gaussian(60, 50, 74)
    plain = float((x.T @ y).norm() ** 2 / (x.T @ x).norm() / (y.T @ y).norm())
    assert plain > 0.4 > 0.1 > abs(alignment.cka(x, y))


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("n", "width"), [(60, 5), (6, 9)])
def test_partition_isotropy_is_a_loop_over_numpy_s_eigenvectors(scale, n, width):
    points = tilted(n, width).points.numpy() * scale
    vectors = np.linalg.eigh(points.T @ points)[1]
    size = [sum(math.exp(x @ (sign * c)) for x in points) for c in vectors.T for sign in (1, -1)]
    found = partition.partition_isotropy(torch.from_numpy(points))
    assert found == pytest.approx(min(size) / max(size), rel=1e-9)


def test_partition_isotropy_depends_on_the_scale_and_on_signs_unless_told_otherwise():
    points = tilted(200, 8).points
    by_scale = [partition.partition_isotropy(points * scale) for scale in (0.1, 1, 4)]
    assert by_scale[0] > by_scale[1] > by_scale[2]
    one = partition.partition_isotropy_one_sign(points)
    assert one >= by_scale[1]
    flipped = partition.partition_isotropy_one_sign(points * -1)
    assert partition.partition_isotropy(points * -1) == pytest.approx(by_scale[1], rel=1e-9)
    assert one != pytest.approx(flipped, rel=1e-3)


def test_orders_of_the_partition_are_its_expansions_for_short_vectors():
    points = tilted(500, 6).points * 1e-3
    assert value("partition_isotropy_first", cloud(points)) == pytest.approx(
        partition.partition_isotropy(points), abs=1e-3
    )
    short = (points - points.mean(0)) * 100
    second = value("partition_isotropy_second", cloud(short))
    assert second == pytest.approx(partition.partition_isotropy(short), abs=5e-3)
    assert value("partition_isotropy_first", cloud(short)) == pytest.approx(1, abs=1e-9)


def test_massive_activations_and_outlier_dimensions_are_loops():
    points = gaussian(60, 8, 75) / 10
    points[:, 3] *= 40
    points[7, 2], points[30, 5], points[31, 5] = 400.0, -300.0, 99.0
    of = cloud(points, [20, 20, 20])
    loop = sum(
        abs(float(x)) > 100 and abs(float(x)) >= 1000 * float(points[s : s + 20].abs().median())
        for s in (0, 20, 40)
        for x in points[s : s + 20].flatten()
    )
    assert value("massive_activations", of) == loop == 2
    variance = points.numpy().var(axis=0)
    assert value("outlier_dimensions", of) == (variance >= 5 * variance.mean()).sum()


def test_self_similarity_is_a_double_loop_over_vectors_of_one_token():
    of = tilted(60, 4)
    found = []
    for name in range(7):
        rows = torch.nonzero(of.token == name).flatten().tolist()
        pairs = [(i, j) for i in rows for j in rows if of.label[i] != of.label[j]]
        cosines = 1 - cdist(of.points, of.points, "cosine")
        found.append(np.mean([cosines[i, j] for i, j in pairs]))
    assert value("self_similarity", of) == pytest.approx(np.mean(found), rel=1e-5)
    base = value("mean_cosine_between", of)
    assert value("self_similarity_adjusted", of) == pytest.approx(np.mean(found) - base, rel=1e-5)


def test_bands_and_the_correlation_with_frequency_are_scipy_s():
    of = words(gaussian(12_000, 3, 76) + 0.5)
    means = {name: of.points[of.token == name].mean(0).numpy() for name in range(450)}
    count = [1] * 300 + [5] * 100 + [224] * 50
    total = sum(means.values())
    along = [mean @ (total - mean) for mean in means.values()]
    expected = stats.pearsonr(along, np.log(count)).statistic
    assert value("frequency_correlation", of) == pytest.approx(expected, rel=1e-5)
    unit = of.points / of.points.norm(dim=1, keepdim=True)
    for band, names in (("rare", range(300)), ("middle", range(300, 400)), ("frequent", range(400, 450))):
        mine = np.stack([unit[of.token == name].mean(0).numpy() for name in names])
        pairs = mine @ mine.T
        expected = pairs[~np.eye(len(mine), dtype=bool)].mean()
        assert value(f"mean_cosine_{band}", of) == pytest.approx(expected, rel=1e-5)
        drift = np.linalg.norm(np.mean([means[name] for name in names], axis=0))
        norm = np.mean([float(of.points[of.token == name].norm(dim=1).mean()) for name in names])
        assert value(f"relative_drift_{band}", of) == pytest.approx(drift / norm, rel=1e-5)


def test_definitions_of_bands_agree_with_each_other():
    of = words(gaussian(12_000, 3, 77) + 0.5)
    assert types.band_cosine(of.points, of.token, "middle") == pytest.approx(
        value("mean_cosine_middle", of), rel=1e-6
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("massive", [3000.0, -3000.0])
def test_massive_activations_are_found_beside_what_is_not_finite(bad, massive):
    cloud = torch.randn(40, 6, generator=torch.Generator().manual_seed(5))
    cloud[7, 1] = massive
    alone = describe(cloud, measures=["massive_activations"]).frame()
    cloud[30, 4] = bad
    beside = describe(cloud, measures=["massive_activations"]).frame()
    assert alone.value[0] == beside.value[0] == 1
