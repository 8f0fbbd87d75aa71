"""The demonstration through the Monitor: its rows are those of a direct look, with loss and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import Examples
from isoscope.lab.train import demo
from isoscope.lab.train.training import Training
from isoscope.measures.table import choose
from isoscope.models.source import Model

FEW = ("mean_cosine_between", "normalised_entropy", "drift_share", "query_drift")


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> demo.Demo:
    """A short one with few measures, on little text."""
    monkeypatch.setattr(demo, "choose", lambda: choose(FEW))
    whole = demo.prepare(4, seed=3)
    held = whole.lesson.held
    experiment = replace(whole.experiment, recipe=replace(whole.experiment.recipe, batch_size=2))
    few = replace(whole.lesson, held=Examples(held.inputs[:8], held.targets[:8]))
    return replace(whole, experiment=experiment, lesson=few)


def performed(plan: demo.Demo, out: Path, steps: list[int] | None = None) -> pd.DataFrame:
    model = plan.experiment.build(plan.lesson)
    with demo.watch(plan, model, out, on_alarm=lambda alarm: None) as monitor:
        demo.perform(plan, model, monitor, None if steps is None else lambda step, of: steps.append(step))
    return isoscope.read_run(out).frame()


def test_rows_loss_and_pictures_of_every_step(plan: demo.Demo, tmp_path: Path) -> None:
    told: list[int] = []
    rows = performed(plan, tmp_path / "run", told)
    assert told == [0, 1, 2, 3, 4]
    assert set(rows.step) == {0, 1, 2, 4} == set(plan.steps)
    model, held = plan.experiment.build(plan.lesson), plan.lesson.held
    for step in Training(model, plan.lesson, plan.experiment.recipe).steps():
        if step not in plan.steps:
            continue
        seen = isoscope.observe(
            Model(model, demo.NAME, step=step),
            [held.inputs],
            measures=FEW,
            heads=True,
            counterfactual=True,
            skip_first=False,
        ).frame()
        own = rows[(rows.step == step) & (rows.kind != "training")].reset_index(drop=True)
        pd.testing.assert_frame_equal(own.drop(columns="run"), seen.drop(columns="run"))
        with torch.no_grad():
            answers = model.eval()(held.inputs)
        loss = float(torch.nn.functional.cross_entropy(answers.flatten(0, 1), held.targets.flatten()))
        assert rows[(rows.step == step) & (rows.measure == "loss")].value.item() == pytest.approx(loss)
    points = isoscope.read_run(tmp_path / "run").points()
    assert set(points.unit) == {f"step {step:06d}" for step in plan.steps}


def test_it_resumes_and_refuses_another_recipe(plan: demo.Demo, tmp_path: Path) -> None:
    rows = performed(plan, tmp_path / "run")
    told: list[int] = []
    pd.testing.assert_frame_equal(performed(plan, tmp_path / "run", told), rows)
    assert told == []  # nothing was left to measure, so nothing was trained
    sorted((tmp_path / "run" / "rows").iterdir())[-1].unlink()
    pd.testing.assert_frame_equal(performed(plan, tmp_path / "run"), rows)
    other = replace(plan.experiment, recipe=replace(plan.experiment.recipe, rate=1.0))
    with pytest.raises(IsoscopeError, match=r"asked with other settings \(rate\)"):
        performed(replace(plan, experiment=other), tmp_path / "run")
