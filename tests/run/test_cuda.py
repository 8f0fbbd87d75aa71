"""On a GPU the readings are those of the CPU; skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoscope import describe, observe
from isoscope.lab.transformer import Shape, build

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_cloud_on_the_gpu_reads_as_on_the_cpu() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        points = (torch.randn(5000, 130) + 0.2).to(dtype)
        sequence = torch.arange(5000) // 50
        here, there = (
            describe(points, sequence=sequence).frame(),
            describe(points.cuda(), sequence=sequence).frame(),
        )
        for column in ("value", "null", "low", "high"):
            np.testing.assert_allclose(there[column], here[column], rtol=1e-9, atol=1e-12)


def test_a_model_on_the_gpu_reads_as_on_the_cpu() -> None:
    model = build(Shape(vocabulary=50, width=64), seed=0)
    batches = [torch.randint(50, (16, 100)) for _ in range(3)]
    here = observe(model, batches).frame()
    model = model.cuda()
    there = observe(model, batches).frame()
    np.testing.assert_allclose(there.value, here.value, rtol=1e-3, atol=1e-5)
    rows = observe(model.bfloat16(), batches).frame()
    undefined = set(rows[rows.value.isna()].measure)
    assert undefined <= {"mean_cosine_rare", "relative_drift_rare"}, "so few tokens that none is rare"
