"""Clusters and CKA on any device against their definitions."""

from __future__ import annotations

import math

import pytest
import torch

from isoscope.geometry import alignment
from isoscope.geometry import clusters as naive
from isoscope.kernels.alignment import u_product
from isoscope.kernels.clusters import cluster_cosine, clusters

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


def groups(n: int, width: int, seed: int, copies: bool = False) -> torch.Tensor:
    """Vectors about five centres; with `copies` every seventh is the first again."""
    random = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(5, width, generator=random)
    points = torch.randn(n, width, generator=random) + centres[torch.randint(5, (n,), generator=random)]
    if copies:
        points[::7] = points[0]
    return points


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("n", "width", "copies"), [(40, 3, True), (300, 96, False), (60, 90, True), (32, 1, False)]
)
def test_clusters_are_those_of_scikit_learn(n: int, width: int, copies: bool, device: str) -> None:
    points = groups(n, width, seed=n + width, copies=copies)
    assert torch.equal(clusters(points.to(device)).cpu(), naive.clusters(points))
    found = cluster_cosine(points.to(device))
    assert found == pytest.approx(naive.cluster_cosine(points), rel=1e-9, abs=1e-12)


def test_clusters_that_run_empty_are_those_of_scikit_learn() -> None:
    points = groups(40, 3, seed=0)
    points[8:] = points[0]  # nine different vectors for eight clusters
    assert cluster_cosine(points) == pytest.approx(naive.cluster_cosine(points), rel=1e-9, nan_ok=True)


def test_too_few_or_equal_vectors_have_no_cosine() -> None:
    assert math.isnan(cluster_cosine(torch.randn(5, 3)))
    assert math.isnan(cluster_cosine(torch.ones(50, 3)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "width", "other"), [(4, 1, 2), (50, 7, 3), (30, 40, 5), (9, 9, 9)])
def test_the_product_of_u_centred_matrices_needs_none_of_them(
    n: int, width: int, other: int, device: str
) -> None:
    random = torch.Generator().manual_seed(n)
    x, y = (torch.randn(n, d, dtype=torch.float64, generator=random) + 1 for d in (width, other))
    x, y = x - x.mean(0), y - y.mean(0)
    expected = (alignment.u_centred(x) * alignment.u_centred(y)).sum()
    assert torch.allclose(u_product(x.to(device), y.to(device)).cpu(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("n", "width"), [(7, 3), (300, 130), (700, 257)])
def test_the_product_of_a_cloud_with_itself_reads_half_of_it(n: int, width: int) -> None:
    x = torch.randn(n, width, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) + 1
    x = x - x.mean(0)
    assert torch.allclose(u_product(x, x), u_product(x, x.clone()), rtol=1e-12)
    assert torch.allclose(u_product(x, x), alignment.u_centred(x).square().sum(), rtol=1e-9)
