"""Uniformity in one product equals its definition over pairs."""

from __future__ import annotations

import math

import pytest
import torch

from isoscope.geometry import cosine
from isoscope.kernels.uniformity import uniformity


@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (3, 700), (257, 16)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_it_equals_its_definition(shape: tuple[int, int], dtype: torch.dtype, mean: float) -> None:
    cloud = (torch.randn(shape, dtype=torch.float64) + mean).to(dtype)
    cloud = torch.cat([cloud, torch.zeros(1, shape[1], dtype=dtype)])  # has no direction
    assert uniformity(cloud) == pytest.approx(cosine.uniformity(cloud), rel=1e-9, abs=1e-12)


def test_one_direction_has_no_pairs() -> None:
    assert math.isnan(uniformity(torch.eye(3)[:1]))
    assert math.isnan(uniformity(torch.zeros(4, 3)))
