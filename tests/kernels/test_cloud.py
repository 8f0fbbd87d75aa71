"""The sums of a cloud against the same sums written out: as slices, and as the Triton kernel does them."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from isoscope.kernels.cloud import totals as cloud
from isoscope.kernels.cloud.chunks import Chunks
from isoscope.kernels.cloud.totals import CloudSums, OfChunks, cloud_sums, massive_limit
from isoscope.kernels.sums import norms
from isoscope.stats.places import Layout
from tests.tiers import nightly

CUDA = torch.cuda.is_available()
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
EXACT = {"count", "pointing", "largest", "beyond"}


def written_out(points: Tensor, kept: Tensor, label: Tensor, labels: int, limit: Tensor) -> CloudSums:
    x, norm = points.double(), points.double().norm(dim=1)
    unit = torch.where(norm > 0, 1 / norm, 0)[:, None] * x
    mine = [(label == name) & kept for name in range(labels)]

    def by_label(values: Tensor) -> Tensor:
        return torch.stack([values[rows].sum(0) for rows in mine])

    inside = x[kept]
    mean = inside.mean(0) if len(inside) else torch.zeros(x.shape[1], dtype=torch.float64)
    return CloudSums(
        count=by_label(torch.ones_like(norm)),
        pointing=by_label((norm > 0).double()),
        norms=by_label(norm),
        squares=by_label(norm**2),
        inner=torch.stack([((x[m] - (x[m].mean(0) if m.any() else 0)) ** 2).sum() for m in mine]),
        total=by_label(x),
        unit=by_label(unit),
        unit_squares=(unit[kept] ** 2).sum(0),
        mean=mean,
        scatter=((inside - mean) ** 2).sum(0),
        largest=inside.abs().amax(0) if len(inside) else torch.zeros_like(mean),
        beyond=((x.abs() >= limit[:, None]) & kept[:, None]).double().sum(0),
    )


def made(n: int, d: int, shift: float, dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Points about a mean `shift` times their spread, zero where not kept; sorted labels 0 … 3."""
    random = torch.Generator().manual_seed(seed)
    points = torch.randn(n, d, generator=random) + shift * torch.randn(d, generator=random)
    kept = torch.rand(n, generator=random) > 0.1
    points = torch.where(kept[:, None], points, 0).to(dtype)
    points[n // 2] = 0
    label = torch.sort(torch.randint(4, (n,), generator=random)).values
    return points, kept, label


def check(found: CloudSums | OfChunks, expected: CloudSums, room: float) -> None:
    assert isinstance(found, CloudSums)
    for name, value in vars(expected).items():
        got = getattr(found, name).cpu()
        assert got.dtype == torch.float64
        size = float(value.abs().max()) if value.numel() else 0.0
        allowed = 0.0 if name in EXACT else room * size
        assert float((got - value).abs().max()) <= allowed, name


SHAPES = ((300, 70, 3.0), (131, 33, 1000.0), (1, 5, 0.0), (257, 300, 0.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("n", "d", "shift"), SHAPES)
def test_slices(n: int, d: int, shift: float, dtype: torch.dtype) -> None:
    points, kept, label = made(n, d, shift, dtype)
    limit = torch.full((n,), 2.5, dtype=torch.float64)
    expected = written_out(points, kept, label, 5, limit)
    check(cloud_sums(points, norms(points), kept, label, 5, limit=limit), expected, 1e-11)
    mixed = torch.randperm(n)
    found = cloud_sums(points[mixed], norms(points[mixed]), kept[mixed], label[mixed], 5, limit=limit)
    check(found, expected, 1e-11)


def test_sums_of_single_dimensions_are_left_out_where_nobody_asks() -> None:
    points, kept, label = made(300, 70, 3.0, torch.float32)
    whole = cloud_sums(points, norms(points), kept, label, 5)
    found = cloud_sums(points, norms(points), kept, label, 5, by_dimension=False)
    assert isinstance(found, CloudSums)
    for name, value in vars(whole).items():
        mine = getattr(found, name)
        if name in ("unit_squares", "mean", "scatter", "largest", "beyond"):
            assert mine.isnan().all() and mine.shape == value.shape, name
        else:
            assert torch.equal(mine, value), name


@pytest.mark.skipif(not (INTERPRETED or CUDA), reason="needs a GPU or Triton's interpreter")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, *nightly(torch.float16)])
@pytest.mark.parametrize(("n", "d", "shift"), [*SHAPES[:-1], *nightly(SHAPES[-1])])
def test_the_kernel(
    n: int, d: int, shift: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud, "fused", lambda points: points.dtype != torch.float64)
    points, kept, label = made(n, d, shift, dtype)
    other, kept_there, _ = made(n, d, shift, dtype)  # of a second site
    limit = torch.full((n,), 2.5, dtype=torch.float64)
    limit[0] = 0.1  # lies between two numbers of float32
    device = torch.device("cuda" if CUDA else "cpu")
    chunks = Chunks.of(label, 5)
    assert chunks is not None
    there = [x.to(device) for x in (points, norms(points), kept, label)]
    found = cloud_sums(*there, 5, limit=limit.to(device), chunks=chunks.to(device))
    assert isinstance(found, OfChunks)
    check(found.joined(), written_out(points, kept, label, 5, limit), 5e-6)
    sites = torch.stack([points, other]).to(device), torch.stack([norms(points), norms(other)]).to(device)
    both = torch.stack([kept, kept_there]).to(device), label.to(device)
    limits = torch.stack([limit, 2 * limit])
    twice = cloud_sums(*sites, *both, 5, limit=limits.to(device), chunks=chunks.to(device)).joined()
    for number, (of_site, counted) in enumerate(((points, kept), (other, kept_there))):
        expected = written_out(of_site, counted, label, 5, limits[number])
        check(CloudSums(*(field[number] for field in vars(twice).values())), expected, 5e-6)
    unlimited = cloud_sums(*there, 5, chunks=chunks.to(device))
    assert isinstance(unlimited, OfChunks)
    same = (unlimited.dimensions == found.dimensions).all(0).all(1)
    assert same.tolist()[:5] == [True] * 5
    assert not unlimited.dimensions[:, 5].any()


def test_chunks_are_the_rows_of_their_label() -> None:
    label = torch.tensor([0] * 200 + [3] * 128 + [4])
    chunks = Chunks.of(label, 6)
    assert chunks is not None
    rows = [label[a : a + s] for a, s in zip(chunks.first.tolist(), chunks.size.tolist(), strict=True)]
    assert [set(row.tolist()) for row in rows] == [{0}, {0}, {3}, {4}]
    assert sum(map(len, rows)) == len(label)
    assert Chunks.of(torch.tensor([1, 0]), 2) is None


@pytest.mark.skipif(not (INTERPRETED or CUDA), reason="needs a GPU or Triton's interpreter")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_of_rows(dtype: torch.dtype) -> None:
    from isoscope.kernels.cloud.triton import row_norms

    points = torch.randn(9, 37).to(dtype)
    points[1], points[2], points[3, 5], points[4, 36] = 0, 1e30, torch.nan, -torch.inf
    found, kept = (x.cpu() for x in row_norms(points.to("cuda" if CUDA else "cpu")))
    expected = points.double().norm(dim=1)
    assert torch.equal(kept, expected.isfinite())
    assert kept.tolist().count(False) == 2
    assert torch.allclose(found, torch.where(kept, expected, 0), rtol=1e-6)
    assert float(found[1]) == 0
    both, kept_of_both = (
        x.cpu() for x in row_norms(torch.stack([points, 2 * points]).to("cuda" if CUDA else "cpu"))
    )
    assert torch.equal(both[0], found) and torch.equal(kept_of_both[1], kept)
    assert torch.allclose(both[1], 2 * found)


@pytest.mark.skipif(not (INTERPRETED or CUDA), reason="needs a GPU or Triton's interpreter")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lengths", [(7, 1, 12), (300,)])
def test_what_is_massive(
    lengths: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's limit is the torch code's, rounded up to float32; samples of even and odd size."""
    device = torch.device("cuda" if CUDA else "cpu")
    sequence = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    points = (torch.randn(len(sequence), 23) * 10 ** torch.randn(len(sequence), 1)).to(dtype)
    kept = torch.rand(len(points)) > 0.3
    kept[lengths[0] :: max(len(sequence), 1)] = False  # a sequence of one vector, which is not kept
    chosen = Layout.of(len(points), sequence, len(lengths), None, torch.device("cpu")).sampled(23)
    assert chosen is not None
    monkeypatch.setattr(cloud, "fused", lambda points: False)
    expected = massive_limit(points, kept, *chosen)
    monkeypatch.setattr(cloud, "fused", lambda points: True)
    found = massive_limit(*(x.to(device) for x in (points, kept, *chosen))).cpu()
    known = expected.isfinite()
    assert bool(known.all()) == (len(lengths) == 1)
    assert torch.equal(known, found.isfinite())
    near = expected.float()
    up = torch.where(near.double() < expected, torch.nextafter(near, torch.tensor(torch.inf)), near)
    assert torch.equal(found[known], up[known])
    sites = torch.stack([points, points.flip(1)]), torch.stack([kept, ~kept])
    several = massive_limit(*(x.to(device) for x in (*sites, *chosen))).cpu()
    one = massive_limit(*(x.to(device) for x in (sites[0][1], sites[1][1], *chosen))).cpu()
    assert torch.equal(several, torch.stack([found, one]))
