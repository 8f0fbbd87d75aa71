"""The training loop: it goes on bit for bit, it stops at a loss that is no number, it works in 16 bits."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import nn

from isoscope.lab.train import training as module
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.training import Diverged, Recipe, Training

SMALL = Experiment(layers=2, width=16, heads=2, length=12, recipe=Recipe(steps=6, batch_size=4))
LESSON = SMALL.lesson()


def begin(experiment: Experiment = SMALL, recipe: Recipe | None = None) -> Training:
    recipe = recipe or experiment.recipe
    return Training(experiment.build(LESSON), LESSON, recipe, experiment.penalties())


def finish(training: Training) -> dict[str, torch.Tensor]:
    *_, last = training.steps()
    assert last == training.recipe.steps
    return training.model.state_dict()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_is_adamw_with_this_rate_and_this_clip() -> None:
    """Against a loop written out by hand, with the optimiser's plain form."""
    training = begin()
    model = SMALL.build(LESSON)
    recipe = SMALL.recipe
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=1.0, betas=(0.9, 0.95), weight_decay=0.1, foreach=False, fused=False
    )
    for step in range(recipe.steps):
        some = LESSON.batch(0, step, 4)
        optimiser.param_groups[0]["lr"] = 3e-3 * (step + 1) / 20
        optimiser.zero_grad()
        answers = model(some.inputs)
        nn.functional.cross_entropy(answers.flatten(0, 1), some.targets.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    for name, weight in finish(training).items():
        torch.testing.assert_close(weight, model.state_dict()[name], msg=name)


def test_seeds_differ_in_weights_and_in_batches() -> None:
    one, other = (begin(replace(SMALL, recipe=replace(SMALL.recipe, seed=seed))) for seed in (0, 1))
    assert not same(one.model.state_dict(), other.model.state_dict())
    other.model.load_state_dict(one.model.state_dict())
    assert not same(finish(one), finish(other))


@pytest.mark.parametrize("attention", ["softmax", "centred", "sigma", "differential"])
@pytest.mark.parametrize("stop", [1, 4])
def test_it_goes_on_to_the_same_weights(attention: str, stop: int) -> None:
    experiment = replace(SMALL, attention=attention)
    whole = finish(begin(experiment))
    first = begin(experiment)
    for step in first.steps():
        if step == stop:
            break
    second = begin(experiment)
    second.restore(first.state())
    steps = list(second.steps())
    assert steps[0] == stop
    assert same(second.model.state_dict(), whole)


def test_looking_changes_nothing() -> None:
    training = begin(replace(SMALL, attention="centred"))
    for _ in training.steps():
        training.held_loss()
    assert same(training.model.state_dict(), finish(begin(replace(SMALL, attention="centred"))))


def test_sixteen_bits_on_a_cpu() -> None:
    recipe = Recipe(steps=40, batch_size=8, rate=1e-2, bfloat16=True)
    training = begin(recipe=recipe)
    seen: list[torch.dtype] = []
    hook = training.model.get_submodule("blocks.0.mlp.0").register_forward_hook(
        lambda module, inputs, output: seen.append(output.dtype)
    )
    before = training.held_loss()
    finish(training)
    hook.remove()
    assert set(seen) == {torch.bfloat16}
    assert {weight.dtype for weight in training.model.parameters()} == {torch.float32}
    assert training.held_loss() < 0.8 * before
    assert isinstance(begin().precision(), nullcontext)


def poison(training: Training, step: int, name: str) -> None:
    """From this step on a module gives NaN."""
    part = training.model.get_submodule(name)
    part.register_forward_hook(
        lambda module, inputs, output: output * torch.nan if training.done >= step else output
    )


@pytest.mark.parametrize("asked_every", [1, 4])
def test_a_loss_that_is_no_number_stops_it(monkeypatch: pytest.MonkeyPatch, asked_every: int) -> None:
    """Also where the device is asked now and then only: weights stay those with which it went wrong."""
    training = begin(recipe=replace(SMALL.recipe, steps=10))
    if asked_every > 1:
        monkeypatch.setattr(module, "LOOKED", asked_every)
        real = training.check
        monkeypatch.setattr(training, "check", lambda: real() if training.done % asked_every == 0 else None)
    poison(training, 5, "blocks.1.mlp.0")
    sound: dict[str, torch.Tensor] = {}
    with pytest.raises(Diverged) as told:
        for step in training.steps():
            if step == 5:
                sound = {name: weight.clone() for name, weight in training.model.state_dict().items()}
    assert str(told.value) == (
        "the loss is nan at step 5, and it began in what leaves blocks.1.mlp.0: that is the first "
        "that is not finite. What was measured and saved before is kept; try a lower --rate."
    )
    assert training.done == (8 if asked_every > 1 else 6)
    assert same(training.model.state_dict(), sound)


def test_a_gradient_that_is_no_number_stops_it() -> None:
    training = begin()
    weight = training.model.get_parameter("blocks.0.mlp.0.weight")
    weight.register_hook(lambda gradient: gradient * torch.inf if training.done >= 2 else gradient)
    with pytest.raises(Diverged, match=r"at step 2, and it began in the gradient of .*mlp\.0\.weight"):
        finish(training)
    assert all(bool(each.isfinite().all()) for each in training.model.state_dict().values())


def test_a_weight_that_is_no_number_is_named() -> None:
    training = begin()
    with torch.no_grad():
        training.model.get_parameter("head.weight")[0, 0] = torch.nan
    with pytest.raises(Diverged, match=r"at step 0, and it began in the weight head\.weight"):
        finish(training)


def test_a_rate_that_is_far_too_high_is_told() -> None:
    wild = replace(SMALL, norm="none", recipe=Recipe(steps=60, batch_size=4, rate=1e12, warmup=1))
    with pytest.raises(Diverged, match=r"at step \d+, and it began in what leaves"):
        finish(begin(wild))


def test_compiled_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[nn.Module] = []
    real = torch.compile

    def traced(model: nn.Module) -> object:  # what it is compiled to is not ours
        calls.append(model)
        return real(model, backend="eager")

    monkeypatch.setattr(torch, "compile", traced)
    training = begin(recipe=replace(SMALL.recipe, compiled=True))
    weights = finish(training)
    assert calls == [training.model]
    for name, weight in finish(begin()).items():
        torch.testing.assert_close(weights[name], weight)
