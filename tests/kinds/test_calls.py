"""What a verb of the command line does is a call from Python: the same folder, without a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.run.telling import Telling
from tests.sweeps.trajectory import walk


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    points = np.random.default_rng(0).standard_normal((200, 8)) + 2
    np.save(tmp_path / "vectors.npy", points.astype(np.float32))
    return tmp_path / "vectors.npy"


def test_advice_on_a_file(vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes: list[str] = []
    telling = Telling(note=notes.append)
    folder = isoscope.advise(vectors, repairs="centre", out=tmp_path / "run", telling=telling)
    assert set(folder.frame().model) == {"before", "centre"}
    assert not notes
    again = isoscope.advise(vectors, repairs="centre", out=tmp_path / "run", telling=telling)
    assert again.run.id == folder.run.id
    assert "nothing is measured again" in notes[0]
    assert "What to do" in isoscope.report(folder).read_text()
    assert capsys.readouterr() == ("", "")


def test_a_comparison_of_runs(vectors: Path, tmp_path: Path, tiny_bert: Path) -> None:
    folder = isoscope.compare([tiny_bert], limit=8, out=tmp_path / "run")
    assert folder.units() == sorted([str(tiny_bert), "comparison"], key=folder.units().index)
    assert isoscope.report(folder).name == "report.html"
    with pytest.raises(IsoscopeError, match="named twice"):
        isoscope.compare([tiny_bert, tiny_bert])


def test_weights_have_a_page(tiny_bert: Path, tmp_path: Path) -> None:
    page = isoscope.report(isoscope.weigh(str(tiny_bert), length=16), tmp_path / "weights.html")
    text = page.read_text()
    assert "query_key" in text and "What is <q>" in text


def test_an_impact_without_a_task_is_one_sentence(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="there is no task"):
        isoscope.impact(tiny_bert, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_sweep_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    walk(tmp_path / "checkpoints", [0, 10, 20])
    capsys.readouterr()  # what saving a model writes
    folder = isoscope.sweep(
        tmp_path / "checkpoints",
        limit=4,
        max_length=16,
        measures=["mean_norm"],
        counterfactual=False,
        workers=0,
        out=tmp_path / "run",
    )
    assert set(folder.frame().step.dropna()) == {0, 10, 20}
    assert "checkpoints" in isoscope.report(folder).read_text()
    assert capsys.readouterr() == ("", "")
    with pytest.raises(IsoscopeError, match="only hub ids have revisions"):
        isoscope.sweep(tmp_path / "checkpoints", revisions="step{0..2}")
