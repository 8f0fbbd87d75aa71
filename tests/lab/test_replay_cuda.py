"""On a GPU a step is recorded and replayed: it gives the weights that steps made one by one give."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from isoscope.lab.penalties.table import PENALTIES
from isoscope.lab.tasks.base import Examples
from isoscope.lab.train import replay
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.replay import Replayed
from isoscope.lab.train.training import Diverged, Recipe, Training
from isoscope.lab.variants.table import VARIANTS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

STEPS = 12
SMALL = Experiment(
    layers=2, width=32, heads=2, length=24, recipe=Recipe(steps=STEPS, batch_size=6, warmup=2, rate=1e-3)
)
LESSON = SMALL.lesson()
ASKED = [
    *(replace(SMALL, attention=each.name) for each in VARIANTS),
    *(replace(SMALL, penalty=each.example) for each in PENALTIES),
    *(replace(SMALL, attention=name, penalty="entropy=5,target=.5") for name in ("differential", "sigmoid")),
    replace(SMALL, recipe=replace(SMALL.recipe, bfloat16=True)),
]


def begin(experiment: Experiment) -> Training:
    return Training(experiment.build(LESSON).cuda(), LESSON, experiment.recipe, experiment.penalties())


def weights(training: Training) -> dict[str, Tensor]:
    for _ in training.steps():
        pass
    return {name: weight.clone() for name, weight in training.model.state_dict().items()}


def is_recorded(training: Training) -> bool:
    return isinstance(training._learn, Replayed) and training._learn._graph is not None


def alike(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """Sums of gradients by atomic additions are not the same bit for bit."""
    for name, weight in one.items():
        torch.testing.assert_close(weight, other[name], rtol=1e-3, atol=2e-4, msg=name)


@pytest.mark.parametrize("experiment", ASKED, ids=lambda each: f"{each.name} {each.recipe.bfloat16}")
def test_replayed_steps_are_those_made_one_by_one(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed = begin(experiment)
    found = weights(replayed)
    assert is_recorded(replayed), replayed._learn
    monkeypatch.setattr(replay, "ALONE", STEPS)
    one_by_one = begin(experiment)
    alike(found, weights(one_by_one))
    assert not is_recorded(one_by_one)


def test_it_goes_on_from_a_state() -> None:
    found, first, second = weights(begin(SMALL)), begin(SMALL), begin(SMALL)
    kept = io.BytesIO()
    for step in first.steps():
        if step == 7:
            torch.save(first.state(), kept)
            break
    kept.seek(0)
    second.restore(torch.load(kept, map_location="cpu", weights_only=True))
    alike(found, weights(second))
    assert is_recorded(second)


def test_a_loss_that_is_no_number_is_found_in_replayed_steps() -> None:
    training = begin(replace(SMALL, recipe=replace(SMALL.recipe, steps=40)))
    with pytest.raises(Diverged, match="at step 9"):
        for step in training.steps():
            if step == 9:
                with torch.no_grad():
                    training.model.head.weight[0, 0] = float("nan")


def test_a_step_that_waits_is_made_one_by_one() -> None:
    seen: list[float] = []
    step = Replayed(lambda some: seen.append(float(some.inputs.sum())))
    for number in range(6):
        step(Examples(torch.full((2, 3), number, device="cuda"), torch.zeros(2, device="cuda")))
    assert seen == [6.0 * number for number in range(6)]
    assert step.refused
