"""A fit does not depend on batches, on their order or on where the stream is cut; how it is gathered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pytest
import torch
from torch import Tensor

from isoscope.errors import IsoscopeError
from isoscope.kernels.scatter.scatter import scatter
from isoscope.repair.fit import gather, transforms
from isoscope.repair.fit.gather import moments_of
from isoscope.repair.fit.sample import MOST, Sample, Watched
from isoscope.repair.fit.transforms import Repair, fit
from isoscope.repair.keep.maps import tensors_of
from isoscope.stats.moments import Moments
from tests.repair.naive import RECIPES, cloud, covariance

CLOSE = 1e-9


def cut(points: Tensor, size: int) -> list[Tensor]:
    return list(points.split(size))


def agree(one: Repair, other: Repair, points: Tensor, close: float = CLOSE) -> None:
    assert one.name == other.name
    mine, its = one.apply(points), other.apply(points)
    assert float((mine - its).abs().max()) <= close * float(mine.abs().max()), one.name


@pytest.mark.parametrize("recipe", RECIPES)
def test_batches_and_order_do_not_matter(recipe: str) -> None:
    points = cloud(530, 9)
    whole = fit(recipe, points)
    for size in (1, 37, 529):
        agree(whole, fit(recipe, cut(points, size)), points)
    agree(whole, fit(recipe, cut(points[torch.randperm(530)], 64)), points)
    agree(whole, fit(recipe, points.numpy()), points)


def law_of_merging(fold: object, points: Tensor) -> None:
    """Records of parts, joined in any order, are the record of all."""
    assert callable(fold)
    parts = [fold(part) for part in cut(points, 61)]
    whole = fold(points)
    for order in (parts, parts[::-1]):
        joined = reduce(lambda one, other: one.merge(other), order)
        assert torch.allclose(joined.mean, whole.mean, rtol=0, atol=CLOSE * float(whole.mean.abs().max()))
        off = float((joined.scatter - whole.scatter).abs().max() / whole.scatter.abs().max())
        assert off <= CLOSE, off


def test_moments_merge() -> None:
    law_of_merging(moments_of, cloud(500, 11, drift=1000.0))


def test_the_law_of_merging_can_fail() -> None:
    def about_zero(points: Tensor) -> Moments:
        right = moments_of(points)
        return Moments(right.count, right.mean, (points.T @ points)[None])

    with pytest.raises(AssertionError):
        law_of_merging(about_zero, cloud(500, 11))


@pytest.mark.parametrize("recipe", ["standardise", "abtt:2", "whiten:5", "rogue:2"])
def test_sixteen_bits_are_summed_in_sixty_four(recipe: str) -> None:
    points = cloud(700, 9, drift=20.0).bfloat16()
    agree(fit(recipe, points), fit(recipe, points.double()), points.double())
    moved = fit(recipe, points).apply(points)
    assert moved.dtype == torch.bfloat16


@pytest.mark.parametrize("drift", [0.0, 100.0])
def test_float32_products_agree_with_their_twin(drift: float) -> None:
    points = cloud(9000, 520, drift=drift).float()
    found = moments_of(points)
    mean = points.double().mean(0)
    twin = scatter(points, torch.ones(9000), mean)
    assert torch.allclose(
        found.mean[0], mean, rtol=0, atol=1e-6 * float(twin.diagonal().mean() / 9000) ** 0.5
    )
    size = twin.diagonal().sqrt()
    assert float(((found.scatter[0] - twin) / size / size[:, None]).abs().max()) < 1e-6


def test_narrow_directions_are_gathered_again_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    precisions: list[torch.dtype] = []

    def watched(points: Tensor) -> Moments:
        precisions.append(points.dtype)
        return moments_of(points)

    monkeypatch.setattr(transforms, "moments_of", watched)
    narrow = torch.randn(6000, 512) * torch.logspace(0, -2, 512)
    turned = narrow @ torch.linalg.qr(torch.randn(512, 512)).Q + 2
    fit("whiten:8", turned)
    assert precisions == [torch.float32]
    for points, wanted in ((turned, [torch.float32, torch.float64]), (narrow, [torch.float32])):
        precisions.clear()
        repair = fit("whiten", points)
        assert precisions == wanted  # dimensions that are narrow themselves are told well enough
        moved = covariance(repair.apply(points.double()))
        assert torch.allclose(moved, torch.eye(512).double(), rtol=0, atol=1e-6)
    precisions.clear()
    fit("whiten", turned, precise=True)
    assert precisions == [torch.float64]
    assert not gather.is_fast(points.double())


def test_squares_that_overflow_float32_are_summed_in_float64() -> None:
    points = torch.randn(2000, 512) * 1e20
    moved = fit("whiten:4", points).apply(points.double())
    assert torch.allclose(covariance(moved), torch.eye(4).double(), atol=1e-5)
    with pytest.raises(IsoscopeError, match="squares of some vectors overflow"):
        fit("abtt", torch.randn(20, 4).double() * 1e200)


def test_vectors_that_are_not_finite_are_left_out_counted_and_told() -> None:
    points = cloud(300, 6)
    broken = torch.cat([points[:100], torch.full((2, 6), torch.nan).double(), points[100:], points[:1]])
    broken[-1, 3] = torch.inf
    repair = fit("abtt:2,whiten:3", cut(broken, 50))
    agree(repair, fit("abtt:2,whiten:3", points), points)
    assert (repair.n, repair.left_out) == (300, 3)
    assert repair.notes[0] == "3 of 303 vectors have NaN or Inf and are left out"


def test_they_are_left_out_of_fast_sums_too() -> None:
    points = torch.randn(3000, 512)
    broken = points.clone()
    broken[7, 5], broken[2999, 0] = torch.inf, torch.nan
    sound = torch.cat([points[:7], points[8:2999]])
    repair = fit("abtt:2", broken)
    assert (repair.n, repair.left_out) == (2998, 2)
    agree(repair, fit("abtt:2", sound), sound.double(), 1e-5)


class Counted:
    """Batches, and how often they were walked over."""

    def __init__(self, points: Tensor) -> None:
        self.points, self.walks = points, 0

    def __iter__(self) -> Iterator[Tensor]:
        self.walks += 1
        yield from cut(self.points, 100)


@pytest.mark.parametrize(
    ("recipe", "walks"),
    [
        ("centre", 1),
        ("centre,standardise,abtt,whiten:3", 1),
        ("abtt,rogue,whiten:3", 2),
        ("cluster-abtt:2", 2),
        ("abtt,cluster-abtt:2,whiten:3", 4),
    ],
)
def test_affine_steps_take_one_walk(recipe: str, walks: int) -> None:
    source = Counted(cloud(400, 8))
    fit(recipe, source)
    assert source.walks == walks


def test_what_can_be_walked_over_once() -> None:
    points = cloud(400, 8)
    agree(fit("abtt,whiten:3", iter(cut(points, 90))), fit("abtt,whiten:3", points), points)
    with pytest.raises(IsoscopeError, match="more than once"):
        fit("cluster-abtt:2", iter(cut(points, 90)))


def test_a_sample_is_the_same_in_any_order() -> None:
    points, owner = cloud(MOST + 500, 20).float(), torch.arange(MOST + 500)
    whole = Sample.of(points, owner)
    order = torch.randperm(len(points))
    parts = [
        Sample.of(points[order][i : i + 999], owner[order][i : i + 999]) for i in range(0, len(points), 999)
    ]
    joined = reduce(lambda one, other: one.merge(other), parts)
    assert len(whole.points) == MOST
    assert torch.equal(joined.points, whole.points)
    assert joined.sequence is not None
    assert torch.equal(points[joined.sequence], joined.points)


def test_a_watched_source_hands_on_what_it_is_given() -> None:
    points = cloud(250, 5)
    points[3, 1] = torch.nan
    pairs = [(part, torch.arange(len(part))) for part in cut(points, 60)]
    watched = Watched(pairs)
    assert torch.equal(torch.cat(list(watched)).nan_to_num(), points.nan_to_num())
    first = watched.sample
    assert first is not None
    assert len(first.points) == 249
    assert len(list(watched)) == 5
    assert watched.sample is first


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("recipe", RECIPES)
def test_vectors_on_a_gpu(recipe: str) -> None:
    points = cloud(530, 9)
    repair = fit(recipe, cut(points.cuda(), 100))
    agree(repair, fit(recipe, points), points, 1e-6)
    assert all(tensor.device.type == "cpu" for step in repair.steps for tensor in tensors_of(step).values())
    assert torch.allclose(repair.apply(points.cuda()).cpu(), repair.apply(points), atol=1e-9)
