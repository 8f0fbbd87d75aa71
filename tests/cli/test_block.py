"""`isoscope block` as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from isoscope.results.store import read_run
from tests.cli.test_errors import sentence
from tests.conftest import Answer

Isoscope = Callable[..., Answer]
TINY = ("--width", 96, "--heads", 2, "--length", 24, "--sequences", 8, "--passes", 2)
SWEPT = ("--norm", "post,pre", "--bias-norms", "0,20,400", "--seeds", 3, *TINY)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("block") / "run"


def test_it_prints_tables_and_keeps_a_page(isoscope: Isoscope, made: Path) -> None:
    answer = isoscope("block", *SWEPT, "--out", made)
    assert answer.code == 0, answer.err
    for word in ("A in", "drift", "smallest", "norm: post, 3 seeds", "report.html"):
        assert word in answer.out
    assert "post: attention sharpens as the bias grows from 0 to 400" in answer.out
    assert "pre: attention evens out as the bias grows from 0 to 400" in answer.out
    assert "post: one pass keeps a norm of 9.8 (3 of 3 seeds); 2 passes lead to 9.8." in answer.out  # √96
    assert "pre: one pass keeps a norm of 9.8" not in answer.out
    assert "2 passes leave norms that still change" in answer.out
    folder = read_run(made)
    assert folder.run.kind == "block"
    assert len(folder.units()) == 2 * 3 * 3
    assert set(folder.points().series) == {"score", "within row"}
    page = (made / "report.html").read_text()
    for heading in ("In and out", "Sub-layers", "Passes", "Scores less the mean of their row · pre"):
        assert heading in page
    assert isoscope("block", *SWEPT, "--out", made).out == answer.out


def test_json_has_the_summary(isoscope: Isoscope, made: Path) -> None:
    isoscope("block", *SWEPT, "--out", made)
    told = json.loads(isoscope("block", *SWEPT, "--out", made, "--json").out)
    share = [each for each in told["summary"] if each["measure"] == "drift_share" and each["norm"] == "post"]
    assert [each["bias"] for each in share] == [0, 20, 400]
    assert all(each["n"] == 3 and each["low"] <= each["value"] <= each["high"] for each in share)
    assert len(told["rows"]) == len(read_run(made).frame())


def test_one_bias_and_one_seed(isoscope: Isoscope, tmp_path: Path) -> None:
    answer = isoscope("block", "--bias-norms", 5, *TINY, "--passes", 0, "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert "1 seed: an interval takes three" in answer.out
    assert "±" not in answer.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--norm", "prae"), "no norm is called 'prae'; did you mean 'pre'?"),
        (("--bias-norms", "0,-1"), "--bias-norms is a list of norms from 0 on, such as 0,20,50; got '0,-1'."),
        (("--bias-norms", "many"), "--bias-norms is a list of norms"),
        (("--inputs", "rough"), "no kind of inputs is called 'rough'"),
        (("--heads", 5), "5 heads do not divide a width of 96"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    isoscope: Isoscope, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    assert told in sentence(isoscope("block", *SWEPT, *words, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_another_width_in_the_same_folder(isoscope: Isoscope, made: Path) -> None:
    assert isoscope("block", *SWEPT, "--out", made).code == 0
    answer = isoscope("block", *SWEPT, "--width", 48, "--out", made)
    assert "asked with other settings (width)" in sentence(answer)
