"""`isoscope repair` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from isoscope.cli.repair import repair
from isoscope.errors import IsoscopeError
from isoscope.repair.keep.export import load_repair
from tests.cli.conftest import Call

VERB = repair


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    points = random.standard_normal((300, 12)) @ random.standard_normal((12, 12)) + 5
    points[7, 3] = np.nan
    np.save(tmp_path / "vectors.npy", points.astype(np.float32))
    return tmp_path / "vectors.npy"


def test_a_model(call: Call, tiny_bert: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(f"line {i} with {i * i} words" for i in range(70)))
    out, _ = call(tiny_bert, "--with", "abtt,whiten:8,centre", "--fit", lines, "--export", tmp_path / "to")
    for word in ("before", "after", "cosine between", "relative", "IsoScore", "effective"):
        assert word in out
    assert "abtt:1,whiten:8,centre: 24 to 8 dimensions, affine, cannot be undone; fitted on 70 vectors" in out
    assert f"repair: {tmp_path / 'to'}" in out
    kept = load_repair(tmp_path / "to")
    assert kept.apply(torch.randn(3, 24)).shape == (3, 8)
    assert kept.facts["layer"] == "layer.2"
    assert kept.facts["pool"] == "mean"


def test_tokens_of_a_layer_as_json(call: Call, tiny_bert: Path, tmp_path: Path) -> None:
    options = ("--pool", "token", "--layer", 1, "--limit", 10, "--max-length", 32, "--json")
    out, _ = call(tiny_bert, "--with", "centre", "--export", tmp_path / "to", *options)
    told = json.loads(out)
    value = {(row["model"], row["measure"]): row["value"] for row in told["rows"]}
    assert value["before", "relative_drift"] > 0.1
    assert value["after", "relative_drift"] < 1e-5
    assert told["repair"] == {"name": "centre", "affine": True, "invertible": True}
    assert {row["n"] for row in told["rows"]} == {300}  # ten sequences without their special tokens


def test_a_file_of_vectors(call: Call, vectors: Path, tmp_path: Path) -> None:
    to = ("--export", tmp_path / "to", "--write", tmp_path / "repaired.npy")
    out, err = call(vectors, "--with", "whiten", *to)
    assert "1 of 300 vectors have NaN or Inf and are left out" in err
    assert "fitted on 299 vectors" in out
    assert f"vectors: {tmp_path / 'repaired.npy'}" in out
    moved = np.load(tmp_path / "repaired.npy")
    rest = np.delete(moved, 7, axis=0).astype(np.float64)
    np.testing.assert_allclose(np.cov(rest.T), np.eye(12), atol=1e-4)
    assert np.isnan(moved[7]).all()


def test_fitted_on_another_file(call: Call, vectors: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    np.savetxt(other, np.random.default_rng(1).standard_normal((50, 12)), delimiter=",")
    out, _ = call(vectors, "--with", "centre", "--fit", other, "--export", tmp_path / "to")
    assert "fitted on 50 vectors" in out
    assert load_repair(tmp_path / "to").facts == {"vectors": str(other)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--with", "whitten"), "did you mean 'whiten'"),
        (("--with", "whiten:13"), "more dimensions than the 12"),
        (
            ("--with", "whiten", "--write", "repaired.csv"),
            "are written as .npy; 'repaired.csv' ends otherwise",
        ),
        (
            ("--with", "whiten", "--fit", "narrow.npy", "--write", "to.npy"),
            "fitted on vectors of 5 dimensions",
        ),
    ],
)
def test_mistakes_are_one_sentence(
    call: Call, vectors: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    np.save(tmp_path / "narrow.npy", np.random.default_rng(2).standard_normal((90, 5)))
    words = tuple(str(tmp_path / word) if word in ("narrow.npy", "to.npy") else word for word in words)
    with pytest.raises(IsoscopeError, match=said):
        call(vectors, *words, "--export", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_writing_is_for_files_of_vectors(call: Call, tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="--write repairs a file of vectors"):
        call(tiny_bert, "--with", "centre", "--export", tmp_path, "--write", tmp_path / "x.npy")


def test_a_file_that_is_not_there_is_no_model(call: Call, tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"no file at '.*none.npy'; give vectors as"):
        call(tmp_path / "none.npy", "--with", "centre", "--export", tmp_path / "to")
