"""The scatter of a cloud against the product in float64: by slices, and by digits as a GPU does it."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from isoscope.kernels.scatter import scatter
from tests.tiers import nightly

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
NEAR = {torch.float32: 1e-6, torch.bfloat16: 1e-4, torch.float16: 1e-6}
on_triton = pytest.mark.skipif(
    not (CUDA or os.environ.get("TRITON_INTERPRET") == "1"), reason="needs a GPU or Triton's interpreter"
)


def made(n: int, width: int, shift: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Points about `shift` spreads, their sizes far apart, and which are kept; the others are no numbers."""
    size = 10.0 ** torch.linspace(-2, 2, width)[torch.randperm(width)]
    points = ((torch.randn(n, width) + shift) * size).to(dtype)
    kept = torch.rand(n) > 0.2
    kept[0] = True
    points[~kept] = torch.tensor([torch.nan, torch.inf, 0.0])[torch.randint(3, (int((~kept).sum()), 1))].to(
        dtype
    )
    return points.to(DEVICE), kept.to(DEVICE)


def written_out(points: Tensor, weight: Tensor, mean: Tensor) -> Tensor:
    kept = weight > 0
    centred = (points[kept].double() - mean) * weight[kept, None]
    return centred.T @ centred


def mean_of(points: Tensor, kept: Tensor) -> Tensor:
    return points[kept].double().mean(0)


def off(found: Tensor, expected: Tensor) -> float:
    """The largest error of an entry, in units of the two dimensions' own spreads."""
    wide = expected.diagonal().sqrt().clamp_min(1e-300)
    return float(((found - expected) / torch.outer(wide, wide)).abs().max())


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64])
def test_by_slices(dtype: torch.dtype) -> None:
    points, kept = made(1500, 40, 3.0, dtype)
    weight, mean = torch.where(kept, torch.rand(1500, device=DEVICE), 0).double(), mean_of(points, kept)
    assert off(scatter.scatter(points, weight, mean), written_out(points, weight, mean)) < 1e-12


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", [0.3, *nightly(0.0, 30.0)])
@pytest.mark.parametrize(("n", "width"), [(1, 16), (77, 45), *nightly((700, 33))])
def test_by_digits(n: int, width: int, shift: float, dtype: torch.dtype) -> None:
    points, kept = made(n, width, shift, dtype)
    mean = mean_of(points, kept)
    for weight in (kept.double(), torch.where(kept, torch.rand(n, device=DEVICE) + 0.1, 0).double()):
        found, expected = scatter.in_digits(points, weight, mean), written_out(points, weight, mean)
        assert found.shape == (width, width)
        assert torch.equal(found, found.T)
        # float32 knows points that lie 30 spreads from the origin to 2e-6 of a spread
        assert off(found, expected) < NEAR[dtype] * max(1.0, shift / 10) or n == 1


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [77, 300])
def test_the_sites_of_one_batch_at_once(n: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scatters of several sites are bit for bit those of each, also where rows come in several parts."""
    sites = [made(n, 45, shift, dtype) for shift in (0.0, 3.0, 0.5)]
    points, kept = (torch.stack(each) for each in zip(*sites, strict=True))
    mean = torch.stack([mean_of(*site) for site in sites])
    monkeypatch.setattr(scatter, "_ROWS", 128)
    there = torch.full(
        (3, 2, 45, 45), torch.nan, dtype=torch.float64, device=DEVICE
    )  # the second half of two
    found = scatter.in_digits(points, kept.double(), mean, there[:, 1])
    assert torch.equal(found, there[:, 1])
    assert there[:, 0].isnan().all()
    for number, (of_site, kept_there) in enumerate(sites):
        alone = scatter.in_digits(of_site, kept_there.double(), mean[number])
        assert torch.equal(found[number], alone)
    by_slices = scatter.scatter(points, kept.double(), mean)
    assert max(off(*each) for each in zip(found, by_slices, strict=True)) < 3 * NEAR[dtype]


@on_triton
@pytest.mark.parametrize("rows", [128, 640, 38_400])
@pytest.mark.parametrize("tiles", [1, 136, 528])
def test_rows_of_a_program_cover_all_rows(rows: int, tiles: int) -> None:
    from isoscope.kernels.scatter.triton import DEEP, PER, _rows_per_program

    per = _rows_per_program(rows, tiles, 132)
    assert 0 < per <= PER + DEEP
    assert per % DEEP == 0


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_in_several_parts_make_one_whole(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    points, kept = made(500, 40, 1.0, dtype)
    weight, mean = kept.double(), mean_of(points, kept)
    expected = written_out(points, weight, mean)
    monkeypatch.setattr(scatter, "_ROWS", 128)
    assert off(scatter.in_digits(points, weight, mean), expected) < (
        3e-5 if dtype == torch.bfloat16 else 1e-6
    )


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_directions_that_hold_rounding_alone_keep_their_size(dtype: torch.dtype, shift: float) -> None:
    """Of 48 directions 44 hold what rounding to 16 bits left there, a millionth: digits lose less than that.

    float32 leaves 1e-14 there, and three digits 1e-12: what RankMe sees of it, its root, is a millionth.
    """
    points = (torch.randn(2000, 4, dtype=torch.float64) @ torch.randn(4, 48, dtype=torch.float64) + shift).to(
        dtype
    )
    points = points.to(DEVICE)
    weight, mean = torch.ones(2000, dtype=torch.float64, device=DEVICE), points.double().mean(0)
    expected = torch.linalg.eigvalsh(written_out(points, weight, mean))
    found = torch.linalg.eigvalsh(scatter.in_digits(points, weight, mean))
    lost = (found.clamp_min(0).sqrt() - expected.clamp_min(0).sqrt()).abs()
    assert float((lost - 5e-3 * expected.clamp_min(0).sqrt()).max()) < 3e-6 * float(expected[-1]) ** 0.5


@on_triton
def test_what_is_tiny_or_the_same_everywhere_has_no_scatter() -> None:
    points = torch.full((40, 20), 7.0, device=DEVICE)
    points[:, 3] = 1e-38 * torch.randn(40, device=DEVICE)
    weight, mean = torch.ones(40, dtype=torch.float64, device=DEVICE), points.double().mean(0)
    assert float(scatter.in_digits(points, weight, mean).abs().max()) < 1e-60
    assert not scatter.in_digits(points, 0 * weight, mean).any()


@on_triton
@pytest.mark.nightly
def test_the_largest_numbers_fill_their_digits() -> None:
    """Every row at the ends of the range: no digit and no sum runs over."""
    sign = torch.where(torch.rand(3000, 1) > 0.5, 1.0, -1.0)
    for dtype in DTYPES:
        points = (sign * torch.ones(24)).to(dtype).to(DEVICE)
        weight, mean = torch.ones(3000, dtype=torch.float64, device=DEVICE), torch.zeros(24, device=DEVICE)
        found = scatter.in_digits(points, weight, mean.double())
        assert float((found - 3000).abs().max()) < 1e-3


@pytest.mark.skipif(not CUDA, reason="int8 products of this size are those of a GPU")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [512, 600, 2048])
def test_a_wide_cloud_on_the_gpu(width: int, dtype: torch.dtype) -> None:
    points, kept = made(140_000, width, 1.0, dtype)
    weight, mean = kept.double(), mean_of(points, kept)
    found = scatter.scatter(points, weight, mean)
    assert off(found, written_out(points, weight, mean)) < NEAR[dtype]


@on_triton
def test_matrices_are_merged_in_one_pass() -> None:
    from isoscope.kernels.scatter.triton import merged

    one, other = torch.randn(2, 3, 37, 37, dtype=torch.float64, device=DEVICE)
    left, right = torch.randn(2, 3, 37, dtype=torch.float64, device=DEVICE)
    expected = one + other + left[:, :, None] * right[:, None, :]
    assert torch.allclose(merged(one, other, left, right), expected, rtol=1e-14, atol=1e-14)
