"""`isoscope figure` as a person types it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isoscope.results.run import Run
from isoscope.results.store import open_run
from tests.cli.test_errors import sentence
from tests.conftest import Answer
from tests.plot.made import folder

Isoscope = Callable[..., Answer]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("figure"), "measure").path


def test_without_a_name_it_lists_what_there_is_a_line_each(isoscope: Isoscope, run: Path) -> None:
    before = sorted(run.rglob("*"))
    answer = isoscope("figure", run)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0].startswith("layers ")
    assert "along the layers" in lines[0]
    assert any(line.startswith("heads ") for line in lines)
    assert lines[-1].startswith("or a measure by its name: mean_cosine_between, ")
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize(("kind", "begins"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_a_figure_is_written_into_the_run_and_is_the_same_twice(
    isoscope: Isoscope, run: Path, kind: str, begins: bytes
) -> None:
    answer = isoscope("figure", run, "layers", "--format", kind)
    assert answer.code == 0, answer.err
    file = run / "figures" / f"layers.{kind}"
    assert answer.out.strip() == str(file)
    first = file.read_bytes()
    assert first.startswith(begins)
    assert isoscope("figure", run, "layers", "--format", kind).code == 0
    assert file.read_bytes() == first


def test_the_file_says_its_format_and_width_and_style_change_it(
    isoscope: Isoscope, run: Path, tmp_path: Path
) -> None:
    found = set()
    for i, words in enumerate([(), ("--width", "double"), ("--style", "slide")]):
        out = tmp_path / "deep" / f"{i}.svg"
        assert isoscope("figure", run, "mean_cosine_between", *words, "--out", out).code == 0
        found.add(out.read_bytes())
    assert len(found) == 3
    assert all(body.startswith(b"<?xml") for body in found)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("layer",), "is called 'layer'; did you mean 'layers'?"),
        (("mean_cosine_betwen",), "did you mean 'mean_cosine_between'?"),
        (("layers", "--format", "jpg"), "no format is called 'jpg'"),
        (("layers", "--width", "tripel"), "no width is called 'tripel'"),
        (("layers", "--style", "papers"), "no style is called 'papers'; did you mean 'paper'?"),
        (("layers", "--out", "figure.docx"), "no format is called 'docx'"),
    ],
)
def test_what_is_not_there_is_told(isoscope: Isoscope, run: Path, words: tuple[str, ...], told: str) -> None:
    assert told in sentence(isoscope("figure", run, *words))


def test_a_folder_without_rows_and_one_that_is_no_run(isoscope: Isoscope, tmp_path: Path) -> None:
    empty = open_run(tmp_path / "empty", Run("measure", "m", {}, {})).path
    assert "has no figure: none of its rows has a value" in sentence(isoscope("figure", empty))
    assert "is no run folder" in sentence(isoscope("figure", tmp_path / "nowhere"))


def test_what_cannot_be_written_is_told(isoscope: Isoscope, run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = isoscope("figure", run, "layers", "--out", tmp_path / "file" / "one.pdf")
    assert "give another path" in sentence(answer)


def test_without_matplotlib_it_says_what_to_install(
    isoscope: Isoscope, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(f"no {name}", name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert isoscope("figure", run).code == 0  # what there is can be told all the same
    assert "matplotlib is not installed" in sentence(isoscope("figure", run, "layers"))
