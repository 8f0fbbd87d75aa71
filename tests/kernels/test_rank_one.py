"""Eigenvalues after a rank-one term, against the decomposition of the whole."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from isoscope.kernels.rank_one import with_rank_one
from isoscope.stats.moments import Moments
from isoscope.stats.seen import Vectors


def spectra() -> dict[str, tuple[Tensor, Tensor]]:
    random = torch.Generator().manual_seed(5)
    some = torch.rand(40, generator=random).double().sort().values
    away = torch.randn(40, generator=random).double()
    few = torch.where(torch.arange(40) % 3 == 0, away, 0)
    return {
        "apart": (some, away),
        "over many orders": (torch.logspace(-12, 6, 40).double(), away),
        "equal": (torch.full((40,), 2.0).double(), away),
        "mostly zero": (torch.where(torch.arange(40) < 30, 0, some), away),
        "along few": (some, few),
        "along none": (some, torch.zeros(40).double()),
        "one dimension": (some[:1], away[:1]),
    }


@pytest.mark.parametrize("weight", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", spectra())
def test_the_eigenvalues_are_those_of_the_whole(name: str, weight: float) -> None:
    values, along = spectra()[name]
    expected = torch.linalg.eigvalsh(torch.diag(values) + weight * torch.outer(along, along))
    found = with_rank_one(values, along, weight)
    assert (found - expected).abs().max() <= 1e-12 * expected.abs().max().clamp_min(1e-300)


def test_both_spectra_of_a_cloud_come_from_one_decomposition() -> None:
    random = torch.Generator().manual_seed(6)
    points = torch.randn(200, 24, generator=random).double() + 3 * torch.randn(24, generator=random)
    record = Moments.of(Vectors.see(points, torch.arange(200) // 10, torch.arange(20)))
    for one, other in zip(record._spread_and_extent, (record.spread, record.extent), strict=True):
        assert torch.allclose(one, other, rtol=1e-11)
