"""`isoscope contrast` as a person types it."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isoscope.results.store import read_run
from isoscope.show.draw.plotly import charts
from tests.cli.test_errors import sentence
from tests.conftest import Answer

Isoscope = Callable[..., Answer]
TINY = ("--layers", 1, "--width", 8, "--heads", 2, "--length", 8, "--steps", 2, "--batch-size", 2)
SMALL = ("--attention", "softmax,sigmoid,convolution", "--entropies", ".5,.99", "--seeds", 3, *TINY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contrast") / "run"


@pytest.fixture
def made(isoscope: Isoscope, folder: Path) -> Path:
    """The folder of a contrast that is trained once for all tests, whichever comes first."""
    if not (folder / "run.json").exists():
        answer = isoscope("contrast", "characters", *SMALL, "--out", folder)
        assert answer.code == 0, answer.err
    return folder


def test_it_prints_a_table_and_keeps_page_and_figure(isoscope: Isoscope, made: Path) -> None:
    answer = isoscope("contrast", "characters", *SMALL, "--out", made)
    assert answer.code == 0, answer.err
    for word in ("convolution", "difference from softmax", "mean over layers", "report.html", "figures: "):
        assert word in answer.out
    assert {file.name for file in made.iterdir()} >= {"report.html", "figures", "run.json"}
    assert len(read_run(made).units()) == 3 * 2 * 2 + 3
    assert answer.out.index("sigmoid") < answer.out.index("convolution")  # as they were asked for
    again = isoscope("contrast", "characters", *SMALL, "--out", made)
    assert again.out == answer.out
    report = isoscope("report", made)
    assert report.code == 0
    assert report.out == answer.out


def test_json_has_the_differences(isoscope: Isoscope, made: Path) -> None:
    told = json.loads(isoscope("contrast", "characters", *SMALL, "--out", made, "--json").out)
    loss = [each for each in told["differences"] if each["measure"] == "loss"]
    assert [each["arm"] for each in loss] == ["sigmoid", "convolution"]
    assert all(each["n"] in (0, 3) for each in loss)
    assert len(told["rows"]) == len(read_run(made).frame())


def test_a_share_is_made_and_said(
    isoscope: Isoscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where neither plotly nor matplotlib is there: rows are what counts."""
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("plotly", "matplotlib"):
            raise ImportError(f"no {name}", name=name.split(".")[0])
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    charts.library.cache_clear()
    charts.carried.cache_clear()
    answer = isoscope("contrast", "characters", *SMALL, "--only", "1/4", "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert "no page was written: plotly is not installed" in answer.err
    assert "no figure was written: matplotlib is not installed" in answer.err
    assert len(read_run(tmp_path / "run").units()) == 4
    assert not (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--attention", "softmax"), "a contrast has two arms or more"),
        (("--attention", "softmax,sofmax"), "no attention variant is called 'sofmax'; did you mean"),
        (("--norm", "prae"), "no norm is called 'prae'; did you mean 'pre'?"),
        (("--penalty", "none", "--penalty", "lokater=1"), "no penalty is called 'lokater'"),
        (("--entropies", "1"), "--entropies is how many, 2 or more"),
        (("--only", "4/4"), "--only is i/n with i from 0 to n − 1, such as 0/4; got '4/4'."),
        (("--device", "abacus"), "device 'abacus' cannot be used here"),
        (("--width", "9"), "2 heads do not divide a width of 9"),
        (("--data", "/no/such/file.txt"), "no data at '/no/such/file.txt'"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    isoscope: Isoscope, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    assert told in sentence(isoscope("contrast", "characters", *SMALL, *words, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_another_recipe_in_the_same_folder(isoscope: Isoscope, made: Path) -> None:
    answer = isoscope("contrast", "characters", *SMALL, "--rate", 1e-4, "--out", made)
    assert "asked with other settings (rate)" in sentence(answer)
