"""Queries and keys on shared axes against eigenvectors of the Gram matrix, written out in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isoscope.geometry.clouds import AXES, Axes, OnAxes, pull, random_axes, shared_axes


def clouds(n: int, m: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    shapes = (n, width), (m, width)
    query, key = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes)
    along = torch.randn(width, generator=random, dtype=torch.float64)
    stretch = torch.linspace(2, 0.5, width, dtype=torch.float64)
    return (query * stretch + 2 * along), (key * stretch - along)


def by_hand(query: Tensor, key: Tensor, how: Axes) -> tuple[Tensor, Tensor]:
    """|coordinates| of all points on the two axes, and the shares: by eigenvectors of a sum of products."""
    offsets = (query.mean(0), key.mean(0)) if how == "centred" else (0.0, 0.0)
    gram = torch.zeros(query.shape[1], query.shape[1], dtype=torch.float64)
    for points, offset in zip((query, key), offsets, strict=True):
        for point in points:
            gram += torch.outer(point - offset, point - offset)
    values, vectors = torch.linalg.eigh(gram)
    axes = vectors[:, [-1, -2]]
    return (torch.cat([query, key]) @ axes).abs(), values[[-1, -2]] / values.sum()


def together(found: OnAxes) -> Tensor:
    return torch.cat([found.query, found.key])


@pytest.mark.parametrize("shape", [(40, 30, 7), (5, 17, 3), (3, 2, 16), (64, 1, 2)])
@pytest.mark.parametrize("how", ["shared", "centred"])
def test_axes_are_the_leading_eigenvectors(how: Axes, shape: tuple[int, int, int]) -> None:
    query, key = clouds(*shape, seed=sum(shape))
    found = shared_axes(query, key, how)
    places, share = by_hand(query, key, how)
    torch.testing.assert_close(together(found).abs(), places, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(found.share, share, rtol=1e-8, atol=1e-10)


def test_shared_and_centred_differ_where_the_clouds_drift() -> None:
    query, key = clouds(40, 30, 7, seed=1)
    places, _ = by_hand(query, key, "centred")
    assert (together(shared_axes(query, key, "shared")).abs() - places).abs().max() > 0.5
    still = query - query.mean(0), key - key.mean(0)
    torch.testing.assert_close(
        together(shared_axes(*still, "shared")).abs(), together(shared_axes(*still, "centred")).abs()
    )


@pytest.mark.parametrize("how", AXES)
def test_the_mean_query_lies_at_the_positive_side(how: Axes) -> None:
    for seed in range(8):
        query, key = clouds(12, 9, 5, seed)
        for mirrored in ((query, key), (-query, -key)):
            assert (shared_axes(*mirrored, how, seed).query.mean(0) >= 0).all()


@pytest.mark.parametrize("how", ["shared", "centred"])
def test_a_rotation_of_both_changes_nothing(how: Axes) -> None:
    query, key = clouds(30, 30, 6, seed=4)
    turn = torch.linalg.qr(clouds(6, 1, 6, seed=5)[0]).Q
    one, other = shared_axes(query, key, how), shared_axes(query @ turn, key @ turn, how)
    torch.testing.assert_close(together(one), together(other))
    torch.testing.assert_close(one.share, other.share)


def test_random_axes_are_orthonormal_and_of_the_seed() -> None:
    query, key = clouds(30, 20, 6, seed=6)
    found = [together(shared_axes(query, key, "random", seed)) for seed in (0, 0, 1)]
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[0], found[2])
    axes = random_axes(6, 3)
    torch.testing.assert_close(axes.T @ axes, torch.eye(2, dtype=torch.float64))
    shares = torch.stack([shared_axes(query, key, "random", seed).share for seed in range(400)])
    assert float(shares.mean()) == pytest.approx(1 / 6, rel=0.15)  # whatever the cloud


@pytest.mark.parametrize("how", AXES)
def test_one_dimension_and_no_energy(how: Axes) -> None:
    query, key = clouds(4, 3, 1, seed=7)
    flat = shared_axes(query, key, how)
    torch.testing.assert_close(flat.query[:, 0].abs(), query[:, 0].abs())
    assert (flat.query[:, 1] == 0).all()
    assert flat.share.tolist() == pytest.approx([1, 0])
    nothing = shared_axes(torch.zeros(3, 4), torch.zeros(2, 4), how)
    assert together(nothing).abs().max() == 0
    assert all(math.isnan(share) for share in nothing.share.tolist())


def test_pull_is_the_cosine_of_the_means_times_both_relative_drifts() -> None:
    for seed in range(6):
        query, key = clouds(15, 11, 4, seed)
        means = query.mean(0), key.mean(0)
        cosine = float(torch.nn.functional.cosine_similarity(*means, dim=0))
        drifts = [
            float(mean.norm() / x.norm(dim=1).mean()) for mean, x in zip(means, (query, key), strict=True)
        ]
        assert pull(query, key) == pytest.approx(abs(cosine) * drifts[0] * drifts[1])
    assert pull(query[:0], key) == pull(torch.zeros(2, 4), key) == 0
