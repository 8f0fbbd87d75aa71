"""`isoscope advise` as a person types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import isoscope
from isoscope.cli.advise import advise
from isoscope.errors import IsoscopeError
from isoscope.results.store import read_run
from tests.cli.conftest import Call

VERB = advise


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    points = random.standard_normal((400, 16)) + 5
    points[7, 3] = np.nan
    np.save(tmp_path / "vec<b>tors.npy", points.astype(np.float32))
    return tmp_path / "vec<b>tors.npy"


def test_a_file_of_vectors(call: Call, vectors: Path, tmp_path: Path) -> None:
    out, err = call(vectors, "--out", tmp_path / "to")
    for word in ("as it is", "centre", "abtt:1", "whiten:16", "cluster-abtt", "rogue:3", "What to do"):
        assert word in out
    assert "one common direction" in out and "Subtract the mean" in out
    assert "1 of 400 vectors have NaN or Inf" in out
    assert "1 of 400 vectors have NaN or Inf and are left out" in err
    page = (tmp_path / "to" / "report.html").read_text()
    assert "default-src &#39;none&#39;" in page
    assert "<b>tors" not in page
    assert "vec&lt;b&gt;tors.npy" in page
    assert not re.search(r"https?:", re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL))
    assert page.index('id="space"') < page.index('id="do"') < page.index('id="repair"')


def test_as_json_and_again_without_measuring(call: Call, vectors: Path, tmp_path: Path) -> None:
    options = ("--with", "centre;abtt,whiten:4", "--limit", 100, "--out", tmp_path / "to", "--json")
    first, err = call(vectors, *options)
    assert "advice is given on 100 of 400 vectors" in err
    told = json.loads(first)
    assert {row["model"] for row in told["rows"]} == {"before", "centre", "abtt:1,whiten:4"}
    known = {f"{row['model']}/{row['measure']}" for row in told["rows"] if row["kind"] == "cloud"}
    for one in told["sentences"]:
        assert {name for name in one["rows"] if "dimension." not in name} <= known
    again, err = call(vectors, *options)
    assert "nothing is measured again" in err
    assert json.loads(again)["rows"] == told["rows"]


def test_a_model_and_its_tokens(call: Call, tiny_bert: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(f"line {i} with {i * i} words" for i in range(90)))
    options = ("--data", lines, "--layer", 1, "--with", "centre", "--out", tmp_path / "to", "--json")
    told = json.loads(call(tiny_bert, *options)[0])
    assert {row["model"] for row in told["rows"]} == {"before", "centre", "tokens", "all tokens"}
    assert {(row["kind"], row["layer"]) for row in told["rows"] if row["kind"] != "dimension"} == {
        ("layer", 1)
    }
    run = read_run(tmp_path / "to").run
    assert run.question["pool"] == "mean"
    assert {row["measure"] for row in told["rows"]} <= set(run.measures)


def test_tokens_of_a_model_are_parted_by_sequence(call: Call, tiny_bert: Path, tmp_path: Path) -> None:
    options = ("--pool", "token", "--limit", 40, "--max-length", 12, "--with", "centre")
    call(tiny_bert, *options, "--out", tmp_path / "to")
    known = read_run(tmp_path / "to").known("advice")
    assert known["parted by"] == "sequence"


def test_the_page_is_made_again_from_the_folder(call: Call, vectors: Path, tmp_path: Path) -> None:
    call(vectors, "--with", "centre", "--out", tmp_path / "to")
    page = tmp_path / "to" / "report.html"
    before = page.read_text()
    page.unlink()
    assert isoscope.report(tmp_path / "to") == page
    assert page.read_text() == before


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (np.ones((1, 4)), "at least 32 vectors.*got 1"),
        (np.full((50, 4), 0.5), "all 50 vectors are the same"),
        (np.full((50, 4), np.nan), "50 more have NaN"),
    ],
)
def test_bad_vectors_are_one_sentence(call: Call, tmp_path: Path, points: np.ndarray, said: str) -> None:
    np.save(tmp_path / "bad.npy", points.astype(np.float32))
    with pytest.raises(IsoscopeError, match=said):
        call(tmp_path / "bad.npy", "--out", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_bad_options_are_one_sentence(call: Call, vectors: Path, tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="did you mean 'centre'"):
        call(vectors, "--with", "center")
    with pytest.raises(IsoscopeError, match="pool"):
        call(tiny_bert, "--pool", "max", "--out", tmp_path / "to")
