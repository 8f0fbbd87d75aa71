"""Every task of the table: what it draws, what it holds out, what chance gives, and that it can be learnt."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from isoscope.errors import IsoscopeError
from isoscope.lab.tasks.base import NOTHING, Lesson
from isoscope.lab.tasks.table import TASKS
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.training import Recipe, Training

LENGTH = 24
LEARNT = {  # steps and rate of a tiny model, and how far below chance it gets in them
    "characters": (60, 1e-2, 0.75),
    "words": (25, 1e-2, 0.9),
    "subwords": (40, 1e-2, 0.9),
    "masked": (60, 1e-2, 0.9),
    "images": (300, 5e-3, 0.85),
    "frames": (40, 1e-2, 0.7),
}


@pytest.fixture(scope="module", params=[task.name for task in TASKS])
def taught(request: pytest.FixtureRequest) -> tuple[str, Lesson]:
    return request.param, Experiment(task=request.param, length=LENGTH).lesson()


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def test_every_task_is_tried() -> None:
    assert set(LEARNT) == {task.name for task in TASKS}


def test_a_batch_is_a_function_of_seed_and_step(taught: tuple[str, Lesson]) -> None:
    lesson = taught[1]
    torch.manual_seed(1)
    first = lesson.batch(3, 7, 5)
    torch.manual_seed(2)
    lesson.batch(0, 0, 2)
    again = lesson.batch(3, 7, 5)
    assert same(first.inputs, again.inputs)
    assert same(first.targets, again.targets)
    assert len(first) == 5
    others = [lesson.batch(seed, step, 5) for seed, step in ((3, 8), (4, 7), (0, 7), (2**40, 7))]
    for other in others:  # of a generator's seed the lowest 32 bits alone would not tell these apart
        assert not same(first.inputs, other.inputs)


def test_chance_is_what_an_untrained_model_costs(taught: tuple[str, Lesson]) -> None:
    name, lesson = taught
    model = Experiment(task=name, length=LENGTH, layers=2, width=32, heads=2).build(lesson)
    loss = Training(model, lesson, Recipe()).held_loss()
    assert loss == pytest.approx(lesson.chance, rel=0.1 if name == "frames" else 0.02)


def test_a_tiny_model_learns_it(taught: tuple[str, Lesson]) -> None:
    name, lesson = taught
    steps, rate, below = LEARNT[name]
    experiment = Experiment(
        task=name, length=LENGTH, layers=2, width=32, heads=2, recipe=Recipe(steps=steps, rate=rate)
    )
    training = Training(experiment.build(lesson), lesson, experiment.recipe)
    *_, last = training.steps()
    assert last == steps
    assert training.held_loss() < below * lesson.chance


def test_what_is_asked_is_what_comes_next(taught: tuple[str, Lesson]) -> None:
    name, lesson = taught
    for some in (lesson.batch(0, 0, 4), lesson.held):
        if name == "images":
            assert some.targets.shape == (len(some),)
            assert int(some.targets.max()) < (lesson.outputs or 0)
        elif name == "masked":
            asked = some.targets != NOTHING
            assert bool(asked.any(1).all())
            assert bool((some.inputs[asked] == lesson.vocabulary - 1).all())  # the mask is no other token
            assert bool((some.targets[asked] < lesson.vocabulary - 1).all())
            assert bool((some.inputs[~asked] < lesson.vocabulary - 1).all())
        else:
            assert same(some.inputs[:, 1:], some.targets[:, :-1])


@pytest.mark.parametrize("task", ["words", "characters", "subwords", "masked"])
def test_what_is_held_out_of_text_is_never_drawn(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a text in which nothing comes twice: no word, no character, no token."""
    file = tmp_path / "unlike.txt"
    letters = [chr(number) for number in range(0x4E00, 0x4E00 + 600)]
    file.write_text(" ".join(letters) if task == "words" else "".join(letters))
    monkeypatch.setattr("isoscope.lab.tasks.text._encoded", lambda data: (torch.arange(600), 600))
    lesson = Experiment(task=task, data=str(file), length=8).lesson()
    some = [lesson.batch(0, step, 8) for step in range(100)]
    asked = {int(x) for each in some for x in each.targets.flatten()} - {NOTHING}
    held = set(lesson.held.targets.flatten().tolist()) - {NOTHING}
    assert len(held) >= 8
    assert not asked & held
    shown = {int(x) for each in some for x in each.inputs.flatten()} - {600}
    assert not shown & (set(lesson.held.inputs.flatten().tolist()) - {600})
    assert len(shown) > 500  # and the rest is


@pytest.mark.parametrize("task", ["images", "frames"])
def test_what_is_held_out_of_pictures_and_sounds_is_never_drawn(task: str) -> None:
    lesson = Experiment(task=task, length=LENGTH).lesson()
    flat = 1 if task == "images" else 2
    some = torch.cat([lesson.batch(0, step, 16).inputs for step in range(100)])
    shown = set(map(tuple, some.flatten(0, flat - 1).flatten(1).tolist()))
    held = set(map(tuple, lesson.held.inputs.flatten(0, flat - 1).flatten(1).tolist()))
    assert len(held) > 100
    assert not shown & held


def test_pictures_from_a_folder(tmp_path: Path) -> None:
    for name, shade in (("dark", 20), ("light", 220)):
        (tmp_path / name).mkdir()
        for number in range(5):
            Image.new("RGB", (16, 16), (shade + number, shade, shade)).save(tmp_path / name / f"{number}.png")
    lesson = Experiment(task="images", data=str(tmp_path)).lesson()
    assert lesson.facts["classes"] == ["dark", "light"]
    assert (lesson.length, lesson.vocabulary) == (64, 12)
    Image.new("RGB", (8, 8)).save(tmp_path / "dark" / "small.png")
    with pytest.raises(IsoscopeError, match="not squares of one size"):
        Experiment(task="images", data=str(tmp_path)).lesson()
    (tmp_path / "dark" / "small.png").write_text("no picture")
    with pytest.raises(IsoscopeError, match=r"cannot read the picture .*small\.png"):
        Experiment(task="images", data=str(tmp_path)).lesson()
    with pytest.raises(IsoscopeError, match="0 pictures in 0 folders; two classes"):
        Experiment(task="images", data=str(tmp_path / "dark")).lesson()
    with pytest.raises(IsoscopeError, match="no pictures at"):
        Experiment(task="images", data=str(tmp_path / "absent")).lesson()


def test_data_that_is_too_short(tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("only a few words")
    for task, items in (("characters", 16), ("words", 5)):
        with pytest.raises(IsoscopeError, match=f"holds {items} items, and .* take 130; give more data"):
            Experiment(task=task, data=str(file), length=64).lesson()
    Experiment(data=str(file), length=7).lesson()  # the shortest that is enough
    with pytest.raises(IsoscopeError, match="take 18"):
        Experiment(data=str(file), length=8).lesson()
    file.write_text("\n \n")
    with pytest.raises(IsoscopeError, match="holds no text"):
        Experiment(data=str(file)).lesson()
    with pytest.raises(IsoscopeError, match="recordings of more than 5000 frames"):
        Experiment(task="frames", length=5000).lesson()


def test_a_word_keeps_its_number_whatever_the_length() -> None:
    short, long = (Experiment(task="words", length=length).lesson() for length in (8, 16))
    assert same(short.held.inputs.flatten()[:64], long.held.inputs.flatten()[:64])
    assert short.vocabulary == long.vocabulary
