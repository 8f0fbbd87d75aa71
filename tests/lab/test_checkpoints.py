"""Checkpoints: when they are due, what is in them, and what a damaged one says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from isoscope.errors import IsoscopeError
from isoscope.lab.train.checkpoints import Checkpoints, due
from isoscope.lab.train.training import Training
from tests.lab.test_training import SMALL, begin, same


def test_when_they_are_due() -> None:
    assert due("log", 1) == (0, 1)
    assert due("log", 8) == (0, 1, 2, 4, 8)
    assert due("log", 9) == (0, 1, 2, 4, 8, 9)
    assert due("3", 9) == (0, 3, 6, 9)
    assert due("100", 9) == (0, 9)


@pytest.mark.parametrize("asked", ["", "often", "0", "-3", "1.5", "²", "٣", "log2"])
def test_nonsense_is_refused(asked: str) -> None:
    with pytest.raises(IsoscopeError, match="--checkpoints is 'log' or a number of steps, 1 or more; got"):
        due(asked, 10)


def after(steps: int, attention: str = "softmax") -> Training:
    training = begin(replace(SMALL, attention=attention))
    for step in training.steps():
        if step == steps:
            break
    return training


@pytest.mark.parametrize("attention", ["softmax", "centred", "sigma"])
def test_what_is_kept_is_the_model(tmp_path: Path, attention: str) -> None:
    training, kept = after(3, attention), Checkpoints(tmp_path)
    kept.keep(training)
    found = load_file(tmp_path / "checkpoints" / "step-000003.safetensors")
    assert same(found, dict(training.model.state_dict()))
    again = after(0, attention)
    again.model.load_state_dict(found)
    assert again.held_loss() == training.held_loss()
    fresh = after(0, attention)
    assert kept.restore(fresh) == 3
    assert fresh.done == 3
    assert same(fresh.model.state_dict(), training.model.state_dict())


def test_nothing_to_go_on_from(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).restore(after(0)) is None


def test_what_was_half_written_is_taken_away(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    kept.keep(after(1))
    aside = [tmp_path / ".state.pt.123", tmp_path / "checkpoints" / ".step-000002.safetensors.123"]
    for file in aside:
        file.write_bytes(b"half")
    assert kept.restore(after(0)) == 1
    assert not any(file.exists() for file in aside)


def test_a_damaged_state_is_told(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    kept.keep(after(1))
    whole = kept.last.read_bytes()
    for body in (b"", b"nothing of the kind", whole[: len(whole) // 2]):
        kept.last.write_bytes(body)
        with pytest.raises(IsoscopeError, match=r"cannot go on from .*state\.pt: .* Remove it to train"):
            kept.restore(after(0))
    torch.save({"done": 1}, kept.last)
    with pytest.raises(IsoscopeError, match=r"'model'\. Remove it"):
        kept.restore(after(0))


def test_a_state_of_another_model_is_told(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    kept.keep(after(1))
    with pytest.raises(IsoscopeError, match="cannot go on from"):
        kept.restore(after(0, "qk-norm"))
