"""Numbers that other people's code computes the same way: scikit-learn, scipy, IsoScore, plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import linalg, stats
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity

from isoscope.kernels.sums import label_sums, mean_cosine, norms
from isoscope.measures.table import choose
from isoscope.stats.directions import Contributions
from tests.laws.law_clouds import Cloud, cloud, gaussian
from tests.laws.law_measures import reading

SHAPES = [(80, 6), (300, 20), (9, 9), (40, 3)]


def tilted(n: int, width: int) -> Cloud:
    points = gaussian(n, width, n + width) * torch.linspace(2, 0.3, width, dtype=torch.float64) + 0.4
    return cloud(points, [n // 3, n // 3, n - 2 * (n // 3)])


def value(name: str, of: Cloud) -> float:
    return reading(choose([name])[0], of).value


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_isoscore_is_the_isoscore_package_s(n, width):
    of = tilted(n, width)
    package = pytest.importorskip("IsoScore.IsoScore", reason="needs IsoScore")
    assert value("isoscore", of) == pytest.approx(
        float(package.IsoScore(of.points.numpy())), rel=1e-5, abs=1e-6
    )


@pytest.mark.parametrize(("n", "width"), [*SHAPES, (5, 30)])
def test_cosines_are_scikit_learn_s(n, width):
    of = tilted(n, width)
    pairs = cosine_similarity(of.points.numpy())[~np.eye(n, dtype=bool)]
    assert value("mean_cosine", of) == pytest.approx(pairs.mean(), rel=1e-5)
    assert value("cosine_variance", of) == pytest.approx((1 - pdist(of.points, "cosine")).var(), rel=1e-5)


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_the_top_share_is_scikit_learn_s_explained_variance(n, width):
    of = tilted(n, width)
    ratio = PCA().fit(of.points.numpy()).explained_variance_ratio_
    assert value("top_share", of) == pytest.approx(ratio[0], rel=1e-5)
    assert value("participation_ratio", of) == pytest.approx(1 / (ratio**2).sum(), rel=1e-5)


@pytest.mark.parametrize(("n", "width"), [*SHAPES, (5, 30)])
def test_ranks_are_scipy_s(n, width):
    of = tilted(n, width)
    points = of.points.numpy()
    sigma = linalg.svdvals(points - points.mean(0))
    assert value("effective_rank", of) == pytest.approx(math.exp(stats.entropy(sigma)), rel=1e-5)
    assert value("rankme", of) == pytest.approx(math.exp(stats.entropy(linalg.svdvals(points))), rel=1e-5)
    stable = np.linalg.norm(points) ** 2 / np.linalg.norm(points, 2) ** 2
    assert value("stable_rank", of) == pytest.approx(stable, rel=1e-5)


@pytest.mark.parametrize(("n", "width"), [(300, 20), (400, 130), (60, 90), (12, 40), (9, 9), (80, 6)])
def test_the_spectral_exponent_is_numpy_s_weighted_fit(n, width):
    of = tilted(n, width)
    values = PCA().fit(of.points.numpy()).explained_variance_[: min(n - 1, width)]
    rank = np.arange(4, min(100, len(values)) + 1)
    slope = np.polyfit(np.log(rank), np.log(values[rank - 1]), 1, w=rank**-0.5)[0]  # of residuals: w² is 1/k
    assert value("spectral_exponent", of) == pytest.approx(-slope, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_spectral_exponent_is_that_of_a_power_law(alpha, dtype):
    """Variances k^−α on axes, exactly; the three largest and those after rank 100 do not enter."""
    falls = torch.arange(1, 131).double() ** (-alpha / 2)
    falls[:3], falls[100:] = 30.0, falls[99]
    cross = torch.cat([torch.eye(130), -torch.eye(130)]).double() * falls
    room = 0.01 if dtype == torch.bfloat16 else 1e-6
    assert value("spectral_exponent", cloud(cross.to(dtype))) == pytest.approx(alpha, abs=room)


def test_the_spectral_exponent_needs_two_ranks_and_leaves_out_rounding():
    four = reading(choose(["spectral_exponent"])[0], cloud(gaussian(50, 4, 71)))
    assert math.isnan(four.value) and four.note == "needs 5 eigenvalues that are not zero"
    points = gaussian(50, 9, 72)
    twice = torch.cat([points, points @ gaussian(9, 3, 73)], 1)  # three directions more, of rounding
    assert 0 < value("spectral_exponent", cloud(twice)) < 4
    assert math.isnan(value("spectral_exponent", cloud(twice[:, :4] @ gaussian(4, 12, 74))))


def test_the_mean_cosine_between_sequences_is_a_double_loop():
    of = tilted(30, 4)
    found = []
    for i in range(30):
        for j in range(30):
            if of.label[i] != of.label[j]:
                x, y = of.points[i], of.points[j]
                found.append(float(x @ y / x.norm() / y.norm()))
    assert value("mean_cosine_between", of) == pytest.approx(np.mean(found), rel=1e-5)


def test_the_contributions_of_dimensions_are_a_triple_loop_and_sum_to_the_mean_cosine():
    of = tilted(12, 3)
    unit = of.points / of.points.norm(dim=1, keepdim=True)
    loop = [
        np.mean([float(unit[i, k] * unit[j, k]) for i in range(12) for j in range(12) if i != j])
        for k in range(3)
    ]
    parts = Contributions.of(of.seen()).contributions()
    assert parts.tolist() == pytest.approx(loop, rel=1e-5)
    assert float(parts.sum()) == pytest.approx(value("mean_cosine", of), rel=1e-9)


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 3000])
def test_fast_sums_are_their_twins(n):
    points = gaussian(n, 5, 60).float()
    label = torch.randint(0, 7, (n,), generator=torch.Generator().manual_seed(n))
    weight = torch.rand(n, generator=torch.Generator().manual_seed(n + 1))
    assert torch.allclose(norms(points), points.double().norm(dim=1), rtol=1e-12)
    twin = torch.stack(
        [(weight.double()[label == k, None] * points.double()[label == k]).sum(0) for k in range(7)]
    )
    assert torch.allclose(label_sums(points, weight, label, 7), twin, atol=1e-9)
    if n > 1:
        assert mean_cosine(points) == pytest.approx(value("mean_cosine", cloud(points)), rel=1e-9)


@pytest.mark.parametrize("n", [907, 900])
@pytest.mark.parametrize("length", [1, 15, 17, 29, 300])
@pytest.mark.parametrize("width", [3, 1500])
def test_label_sums_of_runs(n: int, length: int, width: int) -> None:
    """Runs of one label, as long as each other or not, some of one that was there before; several slices."""
    random = torch.Generator().manual_seed(length + width)
    points = torch.randn(n, width, generator=random)
    label = (torch.arange(n) // length * 5) % 7
    weight = torch.rand(n, generator=random).double()
    twin = torch.stack([(weight[label == k, None] * points[label == k]).sum(0) for k in range(7)])
    assert torch.allclose(label_sums(points, weight, label, 7), twin, atol=1e-9)
    assert mean_cosine(points) == pytest.approx(value("mean_cosine", cloud(points)), rel=1e-9)


def test_the_fast_mean_cosine_leaves_out_zero_rows_and_needs_two():
    points = gaussian(9, 3, 61)
    points[4] = 0
    assert mean_cosine(points) == pytest.approx(value("mean_cosine", cloud(points)), rel=1e-9)
    assert math.isnan(mean_cosine(points[:1]))
