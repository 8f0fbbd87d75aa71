"""The sums of queries and keys per head and sequence, and of both parts of a score: Triton against torch."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.attention.rows import attention_rows
from isoscope.kernels.head_sums import totals as sums_module
from isoscope.kernels.head_sums.totals import vector_totals
from isoscope.kernels.row_totals import totals as rows_module
from isoscope.kernels.row_totals.names import SPLIT
from isoscope.kernels.row_totals.totals import row_totals, split_totals

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
pytestmark = pytest.mark.skipif(
    not (CUDA or os.environ.get("TRITON_INTERPRET") == "1"), reason="needs a GPU or Triton's interpreter"
)


def naive(vectors: Tensor, counts: Tensor) -> dict[str, Tensor]:
    """The sums written out in float64, one head of one sequence at a time."""
    b, h, _, e = vectors.shape
    found = {
        name: torch.zeros(b, h, dtype=torch.float64) for name in ("count", "pointing", "norms", "squares")
    }
    found |= {name: torch.zeros(b, h, e, dtype=torch.float64) for name in ("total", "unit")}
    for i in range(b):
        for j in range(h):
            rows = vectors[i, j][counts[i]].double()
            rows = rows[rows.isfinite().all(-1)]
            norm = rows.norm(dim=-1)
            pointing = rows[norm > 0] / norm[norm > 0, None]
            sums = {
                "count": len(rows),
                "pointing": len(pointing),
                "norms": norm.sum(),
                "squares": (norm**2).sum(),
            }
            for name, value in (sums | {"total": rows.sum(0), "unit": pointing.sum(0)}).items():
                found[name][i, j] = value
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("b", "h", "t", "e"), [(2, 3, 17, 8), (1, 1, 1, 64), (3, 2, 140, 80)])
@pytest.mark.parametrize("fused", [True, False])
def test_the_totals_are_the_sums_written_out(
    b: int, h: int, t: int, e: int, dtype: torch.dtype, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums_module, "fused", lambda _: fused)
    random = torch.Generator().manual_seed(t)
    vectors = (3 * torch.randn(b, t, h, e, generator=random) + 2).to(dtype).transpose(1, 2)
    counts = torch.rand(b, t, generator=random) > 0.2
    counts[0, 0] = True
    if t > 1:
        vectors[0, 0, 3], vectors[0, 0, 4, 1], vectors[-1, -1, 5, 0] = 0, torch.nan, torch.inf
    found = vector_totals(vectors.to(DEVICE), counts.to(DEVICE))
    for name, expected in naive(vectors, counts).items():
        got = getattr(found, name).cpu()
        assert got.dtype == torch.float64
        assert torch.allclose(got, expected, rtol=2e-6, atol=2e-6), name


@pytest.mark.parametrize("fused", [True, False])
def test_several_sites_at_once_are_those_of_each(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sums_module, rows_module):
        monkeypatch.setattr(module, "fused", lambda _: fused)
    q, k = torch.randn(2, 3, 2, 4, 21, 8, device=DEVICE)  # three sites
    q[1, 0, 2, 5], counts = torch.nan, torch.rand(2, 21, device=DEVICE) > 0.3
    many = 40 * torch.rand(3, 1, 4, 1, dtype=torch.float64, device=DEVICE)
    rows, others = ([attention_rows(x, k[i]) for i, x in enumerate(each)] for each in (q, q - 1))
    at_once, without = (
        AttentionRows(*(torch.stack(field) for field in zip(*(vars(x).values() for x in each), strict=True)))
        for each in (rows, others)
    )
    totals, (sums, top) = vector_totals(q, counts), row_totals(at_once, counts)
    drift = torch.rand(3, 2, 4, 21, device=DEVICE)
    split = split_totals(at_once, without, drift, many, counts)
    for i in range(3):
        for name, field in vars(vector_totals(q[i], counts)).items():
            assert torch.equal(getattr(totals, name)[i], field), name
        mine, highest = row_totals(rows[i], counts)
        assert torch.equal(sums[:, i], mine)
        assert torch.equal(top[i], highest)
        assert torch.equal(split[:, i], split_totals(rows[i], others[i], drift[i], many[i], counts))


def test_a_square_beyond_float32_does_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_module, "fused", lambda _: True)
    vectors = torch.full((1, 1, 2, 4), 1e30, device=DEVICE)
    found = vector_totals(vectors, torch.ones(1, 2, dtype=torch.bool, device=DEVICE))
    assert found.norms.item() == pytest.approx(4e30)
    assert found.squares.item() == pytest.approx(8e60)
    assert found.unit.flatten().tolist() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("behind", [(3, 1), (2, 1, 33)])
@pytest.mark.parametrize("causal", [True, False])
def test_the_kernel_gives_both_parts_of_a_score(
    behind: tuple[int, ...], causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 2, 3, 33, 8, generator=random)
    q[0, 1, 7] = torch.nan
    mean = torch.randn(3, 1, 8, generator=random)
    mask = torch.rand(2, 1, 33, 33, generator=random) > 0.3
    mask[-1, :, -1] = False
    as_is, without, drift = (
        attention_rows(x, k, mask=mask, causal=causal) for x in (q, q - mean, mean.expand_as(q))
    )
    counts = torch.rand(2, 33, generator=random) > 0.2
    many = 40 * torch.rand(behind, generator=random, dtype=torch.float64)
    expected = split_totals(as_is, without, drift.score_variance, many, counts)
    monkeypatch.setattr(rows_module, "fused", lambda _: True)
    near = [
        AttentionRows(**{name: x.to(DEVICE) for name, x in vars(rows).items()}) for rows in (as_is, without)
    ]
    others = (drift.score_variance.to(DEVICE), many.to(DEVICE), counts.to(DEVICE))
    found = split_totals(*near, *others).cpu()
    for number, name in enumerate(SPLIT):
        assert torch.allclose(found[number], expected[number], rtol=1e-6, atol=1e-6), name
