"""On a GPU, under deterministic algorithms, training is the same bit for bit, watched or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pandas as pd
import pytest
import torch
from torch import Tensor

from isoscope import observe
from isoscope.models.source import Model
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import ids, language, loss_of, probe

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(autouse=True)
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def trained(watched: bool, way: str) -> tuple[list[float], dict[str, Tensor], pd.DataFrame | None]:
    """Losses, weights and rows of six steps, with dropout drawn on the GPU."""
    torch.manual_seed(0)
    model = language(dropout=0.2).cuda()
    run = torch.compile(model, backend="aot_eager") if way == "compiled" else model
    monitor = Monitor(run, probe(), every=2, budget=None) if watched else None
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(enabled=way == "float16")
    half = torch.autocast("cuda", torch.float16) if way == "float16" else nullcontext()
    torch.cuda.manual_seed(1)
    losses = []
    for step in range(6):
        if monitor is not None:
            monitor.step(step)
        with half:
            loss = loss_of(run, ids(4, step).cuda())
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        optimiser.zero_grad()
        losses.append(loss.item())
    rows = None if monitor is None else monitor.frame()
    return losses, {name: weight.clone() for name, weight in model.state_dict().items()}, rows


@pytest.mark.parametrize("way", ["plain", "compiled", "float16"])
def test_training_is_the_same_on_a_gpu(way: str) -> None:
    alone, watched = trained(False, way), trained(True, way)
    assert alone[0] == watched[0]
    assert all(torch.equal(weight, watched[1][name]) for name, weight in alone[1].items())
    assert watched[2] is not None and set(watched[2].step) == {0, 2, 4}


def test_rows_equal_a_direct_look_on_a_gpu() -> None:
    model = language().cuda()
    monitor = Monitor(model, probe(), budget=None)
    monitor.step(0)
    rows = monitor.frame()
    names = list(dict.fromkeys(rows.measure))
    expected = observe(Model(model, "model", step=0), probe(), measures=names, heads=True).frame()
    pd.testing.assert_frame_equal(
        rows.drop(columns="run"), expected.drop(columns="run"), check_exact=False, rtol=1e-12
    )
