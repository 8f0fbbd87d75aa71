"""Traps of arithmetic: half-precision sums, and covariances that cancel."""

from __future__ import annotations

import pytest
import torch

import isoscope


@pytest.mark.parametrize(("dtype", "most"), [(torch.bfloat16, 0.5), (torch.float16, 0.9)])
def test_trap_half_precision_sums(dtype, most):
    """A running sum in bf16 stops growing at 256 ones; in fp16 at 2,048, and overflows past 65,504."""
    points = (torch.randn(20_000, 4, generator=torch.Generator().manual_seed(0)) * 0.1 + 1).to(dtype)
    running = torch.zeros(4, dtype=dtype)
    for part in points.split(1):
        running += part[0]
    exact = points.double().mean(0).norm()
    assert float((running.double() / len(points)).norm()) < most * float(exact)
    table = isoscope.describe(points).frame().set_index("measure").value
    assert table["drift"] == pytest.approx(float(exact), rel=1e-12)
    assert table["mean_norm"] == pytest.approx(float(points.double().norm(dim=1).mean()), rel=1e-12)


def test_trap_half_precision_norms_overflow():
    """A vector of 300s in 100,000 dimensions has a norm that float16 cannot hold: it is still finite."""
    points = torch.full((2, 100_000), 300.0, dtype=torch.float16)
    assert not (points * points).sum(1).isfinite().any()
    table = isoscope.describe(points, measures=["mean_norm", "not_finite"]).frame().set_index("measure").value
    assert table["not_finite"] == 0
    assert table["mean_norm"] == pytest.approx(300 * 100_000**0.5, rel=1e-12)


@pytest.mark.parametrize(("ratio", "off"), [(100, 0.01), (1000, 1.0)])
def test_trap_one_pass_covariance_in_float32(ratio, off):
    """XᵀX − n·x̄x̄ᵀ summed in float32 loses the spread when the mean is large; centring first does not."""
    points = torch.randn(8000, 16, generator=torch.Generator().manual_seed(1)) + ratio
    products, total = torch.zeros(16, 16), torch.zeros(16)
    for batch in points.split(4):
        products += batch.T @ batch
        total += batch.sum(0)
    one_pass = (products - torch.outer(total, total) / len(points)).double()
    exact = torch.cov(points.double().T) * (len(points) - 1)
    assert float((one_pass - exact).norm() / exact.norm()) > off
    spread = torch.linalg.eigvalsh(exact)
    ratio_of = float(spread.sum() ** 2 / (spread**2).sum())
    table = isoscope.describe(points).frame().set_index("measure").value
    assert table["participation_ratio"] == pytest.approx(ratio_of, rel=1e-9)
    assert table["isoscore"] == pytest.approx((ratio_of - 1) / 15, rel=1e-9)
    assert table["top_share"] == pytest.approx(float(spread.max() / spread.sum()), rel=1e-9)


def test_trap_one_pass_covariance_in_a_stream():
    """The same, when the vectors come in batches and are joined by Chan's rule."""
    points = torch.randn(600, 8, generator=torch.Generator().manual_seed(2)) + 1000
    whole = isoscope.describe(points)
    first, *rest = (isoscope.describe(batch) for batch in points.split(7) if len(batch) > 1)
    for part in rest:
        first = first.merge(part)
    one, other = first.frame().set_index("measure").value, whole.frame().set_index("measure").value
    for name in ("isoscore", "participation_ratio", "effective_rank", "top_share"):
        assert one[name] == pytest.approx(other[name], rel=1e-9)
