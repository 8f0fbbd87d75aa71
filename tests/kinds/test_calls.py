"""What a verb of the command line does is a call from Python: the same folder, without a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.results.store import RunFolder
from isoscope.run.telling import Telling
from tests.golden import runs
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


SIBLINGS = {
    "advise": (("vectors.npy", "--with", "centre;abtt"), ("vectors.npy",), {"repairs": "centre;abtt"}),
    "sweep": (
        ("checkpoints", "--limit", "4", "--max-length", "16", "--measures", "mean_norm",
         "--no-counterfactual", "--workers", "0"),
        ("checkpoints",),
        {"limit": 4, "max_length": 16, "measures": ["mean_norm"], "counterfactual": False, "workers": 0},
    ),
    "compare": (("bert", "--limit", "8"), (["bert"],), {"limit": 8}),
    "impact": (
        ("bert", "--pairs", "pairs.tsv", "--fit", "fit.txt", "--with", "centre", "--layers", "0"),
        ("bert",),
        {"pairs": "pairs.tsv", "fit": "fit.txt", "repairs": "centre", "layers": "0"},
    ),
}  # fmt: skip
"""The words on the command line, and the arguments of the Python call."""


def asked_for(verb: str, folder: Path, tiny_bert: Path) -> None:
    """Write what a verb is asked about."""
    folder.mkdir()
    (folder / "bert").symlink_to(tiny_bert)
    points = np.random.default_rng(0).standard_normal((100, 8)) + 2
    np.save(folder / "vectors.npy", points.astype(np.float32))
    words = [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "and",
        "looked",
        "at",
        "the",
        "dog",
        "while",
        "it",
        "slept",
    ]
    lines = [f"{words[i % 12]} {i}\t{words[(5 * i) % 12]} {i + 1}\t{i % 6}" for i in range(30)]
    (folder / "pairs.tsv").write_text("\n".join(lines))
    (folder / "fit.txt").write_text("\n".join(f"{word} {i} fit" for i, word in enumerate(words * 3)))
    if verb == "sweep":
        walk(folder / "checkpoints", [0, 10])


def timeless(folder: RunFolder, text: str) -> str:
    """The text of a page without when its run was made and the seconds that were measured."""
    text = text.replace(folder.run.created, "")
    return re.sub(r"(seconds</th><td>)[0-9.]+", r"\1", text)


@pytest.mark.parametrize("verb", SIBLINGS)
def test_a_call_writes_what_the_command_writes(
    verb: str, tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, given, options = SIBLINGS[verb]
    asked_for(verb, tmp_path / "asked", tiny_bert)
    monkeypatch.chdir(tmp_path / "asked")
    runs.call(verb, *words, "--out", "run")
    made = isoscope.read_run("run")
    command = timeless(made, (made.path / "report.html").read_text(encoding="utf-8"))
    made.path.rename("command")
    folder = getattr(isoscope, verb)(*given, **options, out="run")
    page = isoscope.report(folder, Path("page.html"))
    assert timeless(folder, page.read_text(encoding="utf-8")) == command


def test_one_string_is_one_item(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for("compare", tmp_path / "asked", tiny_bert)
    monkeypatch.chdir(tmp_path / "asked")
    one, several = (isoscope.compare(what, limit=4, out=f"run{len(what)}") for what in ("bert", ["bert"]))
    assert one.run.id == several.run.id
    with pytest.raises(IsoscopeError, match=r"absent\.tsv"):
        isoscope.impact("bert", pairs="absent.tsv")
    with pytest.raises(IsoscopeError, match="/none"):
        isoscope.compare("/none")
