"""Probes: states are those of an example alone, a reader is the optimum, nothing is found in nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from isoscope.errors import IsoscopeError
from isoscope.lab.model.transformer import Shape, build
from isoscope.lab.tasks.table import TASKS
from isoscope.lab.train import probes
from isoscope.lab.train.experiment import Experiment
from isoscope.lab.train.probes import (
    Questions,
    encoder,
    fit_reader,
    order,
    pooled_states,
    probe,
    questions,
    wilson,
)
from isoscope.models.blocks import find_blocks
from isoscope.models.tap import tap


def ragged(count: int = 300, longest: int = 11, classes: int = 3) -> Questions:
    """Token ids of many lengths; the class says which token is frequent."""
    random = torch.Generator().manual_seed(3)
    labels = torch.randint(classes, (count,), generator=random)
    inputs = torch.randint(3, 20, (count, longest), generator=random)
    inputs[torch.rand(inputs.shape, generator=random) < 0.4] = -1
    inputs = torch.where(inputs < 0, labels[:, None], inputs)
    there = torch.arange(longest) < torch.randint(1, longest + 1, (count, 1), generator=random)
    return Questions(inputs * there, there, labels, torch.rand(count, generator=random) < 0.3)


def states_alone(model: torch.nn.Module, asked: Questions) -> dict[int, Tensor]:
    """Every example by itself, without padding."""
    found: dict[int, list[Tensor]] = {}
    for ids, there in zip(asked.inputs, asked.there, strict=True):
        with (
            torch.no_grad(),
            tap(
                model,
                find_blocks(model),
                lambda site, seen: (
                    found.setdefault(site.layer, []).append(seen[0].mean(0)) if site.kind == "layer" else None
                ),
            ),
        ):
            model(ids[there][None])
    return {layer: torch.stack(parts) for layer, parts in found.items()}


@pytest.mark.parametrize("causal", [True, False])
def test_states_are_those_of_each_example_alone(causal: bool) -> None:
    model = build(Shape(20, width=8, layers=2, heads=2, length=11, causal=causal), 0).double()
    asked = ragged(count=30)
    mine, naive = pooled_states(model, asked), states_alone(model, asked)
    assert sorted(mine) == sorted(naive) == [0, 1, 2]
    for layer, states in mine.items():
        torch.testing.assert_close(states, naive[layer], rtol=1e-9, atol=1e-12)
    assert model.training
    assert not any(part._forward_hooks for part in model.modules())


def test_a_reader_is_the_optimum_of_what_is_said() -> None:
    """A twin from the formula, found by another search."""
    random = torch.Generator().manual_seed(1)
    states = torch.randn(120, 4, dtype=torch.float64, generator=random) * torch.tensor([1.0, 50.0, 0.1, 3.0])
    labels = (states[:, 0] + torch.randn(120, generator=random) > 0).long()
    standard = (states - states.mean(0)) / states.std(0, correction=0)
    rows = torch.cat([standard, torch.ones(120, 1)], 1)

    def cost(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weight = torch.tensor(flat).view(5, 2).requires_grad_()
        loss = F.cross_entropy(rows @ weight, labels, reduction="sum") + weight[:4].square().sum() / 2
        loss.backward()
        return loss.item(), weight.grad.numpy().ravel()

    flat = torch.tensor(minimize(cost, np.zeros(10), jac=True, tol=1e-12).x)
    others = torch.randn(4000, 4, dtype=torch.float64, generator=random) * states.std(0)
    naive = (torch.cat([(others - states.mean(0)) / states.std(0, correction=0), torch.ones(4000, 1)], 1)
             @ flat.view(5, 2)).argmax(1)  # fmt: skip
    assert (fit_reader(states, labels)(others) == naive).double().mean() > 0.999


def test_a_reader_does_not_mind_the_units_nor_what_never_varies() -> None:
    states = torch.randn(80, 3, dtype=torch.float64)
    labels = (states[:, 1] > 0).long()
    others = torch.randn(500, 3, dtype=torch.float64)
    read = fit_reader(states, labels)(others)
    scaled = torch.tensor([1e3, 1e-3, 7.0])
    assert torch.equal(fit_reader(5 + states * scaled, labels)(5 + others * scaled), read)
    level = [torch.cat([x, torch.full((len(x), 1), 3.0)], 1) for x in (states, others)]
    assert torch.equal(fit_reader(level[0], labels)(level[1]), read)


def test_what_is_there_is_found_and_what_is_not_is_not() -> None:
    model = build(Shape(20, width=16, layers=1, heads=2, length=11), 0)
    asked = ragged(count=900)
    found = probe(model, asked)
    for reading in found.values():
        assert reading.n == int(asked.judged.sum())
        assert reading.low > 0.6 > 0.45 > reading.null
    mixed = asked.labels[torch.randperm(len(asked.labels))]
    for reading in probe(model, Questions(asked.inputs, asked.there, mixed, asked.judged)).values():
        assert reading.low < 0.4
        assert reading.value < 0.45


@pytest.mark.parametrize(("right", "n"), [(0, 7), (5, 10), (90, 100), (33, 33)])
def test_the_ends_of_an_interval_are_just_not_refused(right: int, n: int) -> None:
    for end in wilson(right, n):
        if 1e-9 < end < 1 - 1e-9:
            assert abs(right / n - end) / math.sqrt(end * (1 - end) / n) == pytest.approx(1.959964)
        else:
            assert right in (0, n)


@pytest.mark.parametrize("task", [task.name for task in TASKS])
def test_order_is_unknown_to_what_enters(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "DRAWN", 128)
    experiment = Experiment(task=task, length=24, layers=1, width=8, heads=2)
    lesson = experiment.lesson()
    asked = order(lesson)
    assert 0.3 < asked.labels.double().mean() < 0.7
    assert 0 < int(asked.judged.sum()) <= 128
    piece = asked.inputs.shape[1]
    held = lesson.held.inputs
    whole = held[:, : held.shape[1] // piece * piece].reshape(-1, piece, *held.shape[2:])[:128]
    mine = asked.inputs[asked.judged]
    same = (mine == whole).flatten(1).all(1)
    assert same[asked.labels[asked.judged] == 0].all()
    assert not same[asked.labels[asked.judged] == 1].all()
    model = experiment.build(lesson)
    entered, straight = (
        pooled_states(model, Questions(x, torch.ones(x.shape[:2], dtype=torch.bool), *labels))
        for labels in [(asked.labels[asked.judged], torch.arange(len(mine)) % 2 == 0)]
        for x in (mine, whole)
    )
    torch.testing.assert_close(entered[0], straight[0], rtol=0, atol=1e-6)
    assert not torch.allclose(entered[1], straight[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("task", ["characters", "words"])
def test_texts_are_spelt_as_the_lesson_spells(task: str, tmp_path: Path) -> None:
    text = "".join(f"the {number} cats, \x0b{number * 7 % 13} sat\u2028 ß\n" for number in range(60))
    file = tmp_path / "text.txt"
    file.write_text(text)
    lesson = Experiment(task=task, data=str(file), length=8).lesson()
    encode = encoder(task, str(file))
    spelt = encode(text) if task == "characters" else [
        number for line in text.splitlines() for number in (*encode(line), encoder_of_newline(str(file)))
    ]  # fmt: skip
    mine = torch.tensor(spelt[: lesson.held.inputs.numel()])
    assert torch.equal(mine, lesson.held.inputs.flatten())
    assert encode("the dog") == (encode("the ") if task == "characters" else encode("the")) + (
        [] if task == "words" else encode("dog")
    )


def encoder_of_newline(data: str) -> int:
    words = {*Path(data).read_text().split(), "\n"}
    return sorted(words).index("\n")


def written(folder: Path, lines: list[str]) -> str:
    file = folder / "labelled.tsv"
    file.write_text("\n".join(lines))
    return str(file)


def labelled(count: int = 60) -> list[str]:
    return [
        f"{'good' if i % 2 else 'bad'}\tthe {'if' if i % 2 else 'for'} statement {i}" for i in range(count)
    ]


def test_a_file_of_labelled_texts(tmp_path: Path) -> None:
    experiment = Experiment(task="words", length=6, layers=1, width=8, heads=2)
    lesson, rest = experiment.lesson(), ("words", "embedded", 6)
    asked = questions(written(tmp_path, labelled()), *rest, lesson)
    assert asked.facts["probe_classes"] == ["bad", "good"]
    assert len(asked.labels) == 60
    assert 4 <= int(asked.judged.sum()) <= 24
    turned = questions(written(tmp_path, labelled()[::-1]), *rest, lesson)
    assert turned.facts == asked.facts  # the order of lines does not matter
    assert torch.equal(turned.judged, asked.judged)
    readings = probe(experiment.build(lesson), asked)
    assert readings[0].value == readings[1].value == 1.0  # one word decides
    short = questions(written(tmp_path, labelled()), "words", "embedded", 2, lesson)
    assert short.inputs.shape[1] == 2


def test_what_cannot_be_asked_is_one_sentence(tmp_path: Path) -> None:
    words, sounds = Experiment(task="words", length=8).lesson(), Experiment(task="frames", length=8).lesson()
    for lines, told in (
        (["good\tyes", "no tab"], "line 2 of .* has no tab; a probe's lines are label, tab, text"),
        (["good\tthe if", "good\tthe for"], "a probe needs two classes or more"),
        (["good\tzzzqqq", "bad\tqqqzzz"], "has 0 examples of 0 classes"),
    ):
        with pytest.raises(IsoscopeError, match=told):
            questions(written(tmp_path, lines), "words", "embedded", 8, words)
    with pytest.raises(IsoscopeError, match=r"no data at '/no/such\.tsv'"):
        questions("/no/such.tsv", "words", "embedded", 8, words)
    with pytest.raises(IsoscopeError, match="--probe of the task frames is 'order'"):
        questions("some.tsv", "frames", "embedded", 8, sounds)
    digits = Experiment(task="images").lesson()
    with pytest.raises(IsoscopeError, match=r"'order' or a folder with a folder a class; got 'some\.tsv'"):
        questions("some.tsv", "images", "embedded", 8, digits)


def painted(folder: Path, side: int) -> str:
    random = torch.Generator().manual_seed(0)
    for name, shade in (("dark", 40), ("light", 160)):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            noise = torch.randint(60, (side, side, 3), generator=random, dtype=torch.uint8) + shade
            Image.fromarray(noise.numpy()).save(folder / name / f"{number}.png")
    return str(folder)


def test_pictures_of_other_classes(tmp_path: Path) -> None:
    experiment = Experiment(task="images", data=painted(tmp_path / "learnt", 16), layers=1, width=8, heads=2)
    lesson = experiment.lesson()
    rest = ("images", experiment.data, experiment.length, lesson)
    asked = questions(painted(tmp_path / "others", 16), *rest)
    assert asked.facts["probe_classes"] == ["dark", "light"]
    assert int(asked.judged.sum()) == 24 // 5
    assert probe(experiment.build(lesson), asked)[1].value == 1.0
    with pytest.raises(IsoscopeError, match="give pictures of the same size"):
        questions(painted(tmp_path / "larger", 32), *rest)
