"""Every repair against its definition on the whole matrix, and the identities it must make true."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.covariance import OAS
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from isoscope.geometry.cosine import dimension_contributions
from isoscope.repair.fit.transforms import fit
from isoscope.repair.keep.maps import Clustered
from tests.repair.naive import RECIPES, all_but_the_top, centred, cloud, covariance

SHAPES = ((400, 7), (901, 13), (97, 24))


@pytest.mark.parametrize("shape", SHAPES)
def test_centre_and_standardise(shape: tuple[int, int]) -> None:
    points = cloud(*shape)
    assert torch.allclose(fit("centre", points).apply(points), centred(points), atol=1e-9)
    ours = fit("standardise", points).apply(points)
    whole = StandardScaler().fit_transform(points.numpy()) * np.sqrt(1 - 1 / shape[0])  # over n − 1, not n
    np.testing.assert_allclose(ours.numpy(), whole, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("many", [1, 3])
def test_all_but_the_top_projects_the_centred_vector(shape: tuple[int, int], many: int) -> None:
    points = cloud(*shape)
    repair = fit(f"abtt:{many}", points)
    assert torch.allclose(repair.apply(points), all_but_the_top(points, many), atol=1e-8)
    assert torch.allclose(repair.apply(points).mean(0), torch.zeros(shape[1]).double(), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kept", [1, 5, None])
def test_whitening_is_that_of_scikit_learn(shape: tuple[int, int], kept: int | None) -> None:
    points = cloud(*shape)
    repair = fit("whiten" if kept is None else f"whiten:{kept}", points)
    whole = PCA(kept, whiten=True, svd_solver="full").fit_transform(points.numpy())
    ours = repair.apply(points)
    np.testing.assert_allclose(ours.numpy(), whole, atol=1e-6)
    assert torch.allclose(covariance(ours), torch.eye(ours.shape[1]).double(), atol=1e-9)
    assert torch.allclose(ours.mean(0), torch.zeros(ours.shape[1]).double(), atol=1e-9)
    assert repair.is_invertible == (kept is None)


def test_vectors_come_back_where_the_map_can_be_undone() -> None:
    points = cloud(300, 9)
    repair = fit("standardise,whiten", points)
    matrix, offset = repair.affine()
    back = torch.linalg.solve(matrix, (repair.apply(points) - offset).T).T
    assert repair.is_invertible
    assert torch.allclose(back, points, atol=1e-9)


def test_too_few_vectors_are_shrunk_as_by_scikit_learn() -> None:
    points = cloud(30, 48)
    repair = fit("whiten", points)
    assert "30 vectors of 48 dimensions are too few" in repair.notes[0]
    shrunk = OAS().fit(points.numpy())
    empirical = covariance(points)
    round_one = torch.eye(48).double() * empirical.trace() / 48
    wanted = (1 - shrunk.shrinkage_) * empirical + shrunk.shrinkage_ * round_one
    matrix, _ = repair.affine()
    assert f"{shrunk.shrinkage_:.2f}" in repair.notes[0]
    assert torch.allclose(matrix @ wanted @ matrix.T, torch.eye(48).double(), atol=1e-9)
    assert repair.is_invertible


def test_enough_vectors_are_not_shrunk_and_few_are_told() -> None:
    assert fit("whiten", cloud(300, 9)).notes == ()
    assert "may be read as little as" in fit("whiten", cloud(49, 24)).notes[0]
    assert fit("whiten:5", cloud(49, 24)).notes == ()  # wide directions are told well enough


def test_rogue_dimensions_are_those_that_make_the_mean_cosine() -> None:
    points = torch.randn(200, 11).double()
    points[:, 4] += 9
    points[:, 7] -= 6
    repair = fit("rogue:2", points)
    worst = dimension_contributions(points).topk(2).indices
    assert set(worst.tolist()) == {4, 7}
    wanted = points.clone()
    wanted[:, worst] = 0
    assert torch.equal(repair.apply(points), wanted)
    assert not repair.is_invertible


def test_every_cluster_loses_its_own_mean_and_top() -> None:
    parts = [cloud(n, 8, drift=30.0) for n in (210, 90, 133)]
    points = torch.cat(parts)[torch.randperm(433)]
    repair = fit("cluster-abtt:3:2", points)
    (step,) = repair.steps
    assert isinstance(step, Clustered)
    label = step.nearest(points)
    assert sorted(torch.bincount(label).tolist()) == [90, 133, 210]
    moved = repair.apply(points)
    for name in range(3):
        wanted = all_but_the_top(points[label == name], 2)
        assert torch.allclose(moved[label == name], wanted, atol=1e-8)
    assert not repair.is_affine
    assert not repair.is_invertible


def test_the_second_is_fitted_on_what_the_first_gives() -> None:
    points = cloud(500, 12)
    chained = fit("standardise,abtt:2,whiten:6", points)
    left = points
    for recipe in ("standardise", "abtt:2", "whiten:6"):
        left = fit(recipe, left).apply(left)
    assert chained.name == "standardise,abtt:2,whiten:6"
    assert torch.allclose(chained.apply(points), left, atol=1e-8)
    matrix, offset = chained.affine()
    assert torch.allclose(points @ matrix.T + offset, left, atol=1e-8)


def test_a_direction_that_was_taken_away_is_not_stretched_back() -> None:
    points = cloud(500, 12)
    points += 1e4 * torch.outer(torch.randn(500).double(), torch.randn(12).double())  # rounding is left of it
    repair = fit("abtt:2,whiten", points)
    assert repair.name == "abtt:2,whiten:10"
    assert "10 of 12 directions have a spread" in repair.notes[0]
    assert float(repair.apply(points).abs().max()) < 10


def test_float32_has_no_spread_where_only_rounding_is() -> None:
    points = torch.nn.functional.layer_norm(torch.randn(4000, 16) @ torch.randn(16, 16), (16,)) * 3 + 100
    assert fit("whiten", points).name == "whiten:15"  # coordinates that are normed add up to one number


@pytest.mark.parametrize("recipe", RECIPES)
def test_apply_gives_back_what_kind_it_was_given(recipe: str) -> None:
    points = cloud(120, 9)
    repair = fit(recipe, points)
    wanted = repair.apply(points)
    assert wanted.shape == (120, repair.gives)
    for exact, close in (("float64", 1e-12), ("float32", 1e-4), ("float16", 0.3)):
        given = points.numpy().astype(exact)
        found = repair.apply(given)
        assert isinstance(found, np.ndarray)
        assert found.dtype == given.dtype
        if repair.is_affine:  # on the border of two clusters rounding decides
            np.testing.assert_allclose(found.astype(np.float64), wanted.numpy(), atol=close, rtol=0.02)
    deep = repair.apply(points.reshape(2, 60, 9))
    assert torch.allclose(deep.reshape(120, -1), wanted, atol=1e-12)
    assert torch.allclose(repair.apply(points[3]), wanted[3], atol=1e-12)
    frozen = points.numpy().copy()
    frozen.flags.writeable = False
    np.testing.assert_allclose(repair.apply(frozen), wanted.numpy())
    bad = points.clone()
    bad[5, 2] = torch.nan
    assert set(torch.nonzero(repair.apply(bad).isnan().any(1)).flatten().tolist()) <= {5}
