"""The totals of attention rows: the Triton kernel against the torch code."""

from __future__ import annotations

import os

import pytest
import torch

from isoscope.geometry.attention import AttentionRows
from isoscope.kernels.attention.rows import attention_rows
from isoscope.kernels.row_totals import totals as rows_module
from isoscope.kernels.row_totals.names import TOTALS
from isoscope.kernels.row_totals.totals import row_totals

CUDA = torch.cuda.is_available()
pytestmark = pytest.mark.skipif(
    not (CUDA or os.environ.get("TRITON_INTERPRET") == "1"), reason="needs a GPU or Triton's interpreter"
)


def made(batch: int, heads: int, length: int, *, causal: bool) -> tuple[AttentionRows, torch.Tensor]:
    """Rows with some that see nothing, some that are not finite, and some that do not count."""
    random = torch.Generator().manual_seed(length)
    q, k = torch.randn(2, batch, heads, length, 8, generator=random)
    q[0, 0, length // 2] = torch.nan
    mask = torch.rand(batch, 1, length, length, generator=random) > 0.3
    mask[-1, :, -1] = False
    rows = attention_rows(4 * q, k, mask=mask, causal=causal)
    return rows, torch.rand(batch, length, generator=random) > 0.2


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("batch", "heads", "length"), [(2, 3, 17), (1, 1, 1), (3, 2, 130)])
def test_the_kernel_gives_the_totals(
    batch: int, heads: int, length: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, counts = made(batch, heads, length, causal=causal)
    expected, highest = row_totals(rows, counts)
    monkeypatch.setattr(rows_module, "fused", lambda _: True)
    device = "cuda" if CUDA else "cpu"
    there = AttentionRows(**{name: field.to(device) for name, field in vars(rows).items()})
    found, top = row_totals(there, counts.to(device))
    for number, name in enumerate(TOTALS):
        assert torch.allclose(found[number].cpu(), expected[number], rtol=1e-6, atol=1e-6), name
    assert torch.equal(top.cpu(), highest)
