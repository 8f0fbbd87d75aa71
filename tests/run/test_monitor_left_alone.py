"""What a look must not touch, and must not be confused by: adapters, random states, other trainings."""

from __future__ import annotations

import itertools
import os
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from isoscope.errors import IsoscopeError
from isoscope.results.store import read_run
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import WIDTH, language, probe

FEW = ["mean_cosine"]


class Adapter(nn.Linear):
    """An adapter that folds its two matrices into the weight in eval mode, and out again in train mode."""

    def __init__(self) -> None:
        super().__init__(WIDTH, WIDTH)
        self.one, self.two = nn.Parameter(torch.randn(2, WIDTH)), nn.Parameter(torch.randn(WIDTH, 2))
        self.folded = False

    def train(self, mode: bool = True) -> Adapter:
        super().train(mode)
        if mode == self.folded:
            self.weight.data += (-1 if mode else 1) * (self.two @ self.one).detach()
            self.folded = not mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        own = super().forward(x)
        return own if self.folded else own + x @ self.one.T @ self.two.T


class Shaken(nn.Module):
    """Adds noise from a random state of its own, and keeps the first that it drew."""

    def __init__(self) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(3)
        self.register_buffer("first", None)

    def forward(self, x: Tensor) -> Tensor:
        drawn = torch.randn(x.shape[-1], generator=self.random)
        if self.first is None:
            self.first = drawn
        return x + drawn


def test_an_adapter_is_not_folded_in() -> None:
    model = language()
    model.blocks[0].query = Adapter()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    Monitor(model, probe(1), measures=FEW).step(0)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert not model.blocks[0].query.folded and model.blocks[0].query.training


def test_a_random_state_of_its_own_and_a_buffer_to_come_are_put_back() -> None:
    model = language()
    model.blocks[1].dropout = Shaken()
    before = model.blocks[1].dropout.random.get_state()
    Monitor(model, probe(1), measures=FEW).step(0)
    assert torch.equal(model.blocks[1].dropout.random.get_state(), before)
    assert model.blocks[1].dropout.first is None


def test_the_random_state_of_a_batch_sampler_is_put_back() -> None:
    random = torch.Generator().manual_seed(0)
    rows = torch.cat(probe(2))
    loader = DataLoader(rows, batch_sampler=BatchSampler(RandomSampler(rows, generator=random), 4, False))  # type: ignore[arg-type]
    before = random.get_state()
    Monitor(language(), loader, measures=FEW)
    assert torch.equal(random.get_state(), before)


def test_another_training_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    Monitor(language(), probe(1), measures=FEW, out=tmp_path / "run").step(0)
    same = Monitor(language(), probe(1), measures=FEW, out=tmp_path / "run")
    same.step(0)
    other = language()
    with torch.no_grad():
        other.head.weight.add_(1)
    with pytest.raises(IsoscopeError, match="rows of step 0 of a model with other weights"):
        Monitor(other, probe(1), measures=FEW, out=tmp_path / "run").step(0)


def test_an_alarm_that_fails_is_taken_down_and_rows_are_kept(tmp_path: Path) -> None:
    def failing(rows: pd.DataFrame) -> None:
        raise KeyError("nothing")

    monitor = Monitor(
        language(), probe(1), measures=FEW, out=tmp_path / "run", alarms=[failing], every=1, budget=None
    )
    with pytest.warns(UserWarning, match="the alarm failing failed"):
        monitor.step(0)
    monitor.step(1)
    assert set(read_run(tmp_path / "run").frame().step) == {0, 1}


def test_a_change_of_folder_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monitor = Monitor(language(), probe(1), measures=FEW, out="run", every=1, budget=None)
    monitor.step(0)
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    monitor.step(1)
    monitor.close()
    assert set(read_run(tmp_path / "run").frame().step) == {0, 1}


def test_a_sink_cannot_spoil_what_the_next_is_told() -> None:
    heard: list[dict[str, float]] = []
    Monitor(
        language(),
        probe(1),
        sinks=[lambda _, told: told.clear(), lambda _, told: heard.append(dict(told))],  # type: ignore[attr-defined]
    ).step(0)
    assert heard[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"probe": torch.zeros(2, 3, dtype=torch.long)},
            "a list of batches, such as \\[batch\\]; got a single",
        ),
        ({"probe": None}, "got NoneType"),
        ({"probe": ([0] for _ in itertools.count())}, "more than 1024 batches"),
        ({"probe": DataLoader([1], num_workers=1, persistent_workers=True)}, "persistent workers"),  # type: ignore[arg-type]
        ({"steps": 0}, "steps is a whole number from 1 on; got 0"),
        ({"points": -1}, "points is a whole number from 0 on; got -1"),
        ({"measures": "mean_cosin"}, "did you mean 'mean_cosine'"),
    ],
)
def test_bad_input_is_one_sentence(options: dict[str, Any], words: str) -> None:
    with warnings.catch_warnings(), pytest.raises(IsoscopeError, match=words):
        Monitor(language(), **{"probe": probe(1), **options})
