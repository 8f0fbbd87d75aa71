"""`isoscope impact` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isoscope.cli.impact import impact
from isoscope.cli.screen.finish import finish
from isoscope.errors import IsoscopeError
from isoscope.kinds.impact import effects, finding, headline
from isoscope.kinds.report import Written
from isoscope.results.store import read_run
from tests.cli.conftest import Call

VERB = impact
WORDS = (
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
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    random = np.random.default_rng(0)
    every = [" ".join(random.choice(WORDS, int(random.integers(2, 7)))) + f" {i}" for i in range(300)]
    found = {name: tmp_path / f"{name}.tsv" for name in ("pairs", "labels", "seek")}
    lines = [f"{a}\t{b}\t{random.uniform(0, 5):.2f}" for a, b in zip(every[:40], every[40:80], strict=True)]
    found["pairs"].write_text("sentence1\tsentence2\tscore\n" + "\n".join(lines))
    found["labels"].write_text("".join(f"{'cat' if 'cat' in t else 'none'}\t{t}\n" for t in every[80:200]))
    found["seek"].write_text("".join(f"{t.split()[0]} {i}\t{t}\n" for i, t in enumerate(every[200:230])))
    found["fit"] = tmp_path / "fit.txt"
    found["fit"].write_text("\n".join(every[230:]))
    return found


def test_a_table_a_page_and_a_figure(
    call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path
) -> None:
    tasks = ("--pairs", files["pairs"], "--labels", files["labels"], "--retrieve", files["seek"])
    ask = (
        tiny_bert,
        *tasks,
        "--fit",
        files["fit"],
        "--with",
        "centre;abtt,whiten:4",
        "--out",
        tmp_path / "run",
    )
    out, _ = call(*ask)
    for word in (
        "layer 0",
        "layer 2",
        "as it is",
        "abtt,whiten:4",
        "mean",
        "cosine",
        "Spearman, pairs",
        "anti-hubs",
    ):
        assert word in out
    assert "cannot matter: centre" in out
    assert "page: " in out
    rows = read_run(tmp_path / "run").frame()
    assert set(rows.model) == {"as it is", "centre", "abtt,whiten:4"}
    assert set(rows.layer) == {0, 2}
    probed = rows[(rows.measure == "accuracy.labels.change") & (rows.model == "centre")]
    assert probed.note.str.startswith("cannot matter: every dimension scaled and shifted by itself").all()
    assert (probed.value == 0).all()
    scored = rows[~rows.measure.isin(["isoscore", "effective_rank"])]
    assert ((scored.low <= scored.value + 1e-12) & (scored.value <= scored.high + 1e-12)).mean() > 0.95
    assert {"spearman.pairs", "pearson.pairs", "recall_1.seek", "recall_10.seek", "reciprocal_rank.seek",
            "hub_skewness", "mean_cosine_between", "relative_drift"} <= set(rows.measure)  # fmt: skip
    page = (tmp_path / "run" / "report.html").read_text()
    for word in ("Anisotropy and score", "Layer 0", "What is <q>Spearman, pairs</q>?"):
        assert word in page
    for kind in ("svg", "pdf"):
        assert (tmp_path / "run" / "figures" / f"arrows.{kind}").stat().st_size > 1000
    assert "whiten:4" in (tmp_path / "run" / "figures" / "arrows.svg").read_text()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and figures take longer than all the rest."""
    monkeypatch.setattr("isoscope.cli.screen.finish.write", lambda _: Written(None))


@pytest.mark.usefixtures("undrawn")
def test_a_folder_goes_on(call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path) -> None:
    ask = (
        tiny_bert,
        "--pairs",
        files["pairs"],
        "--fit",
        files["fit"],
        "--with",
        "centre",
        "--out",
        tmp_path / "run",
    )
    out, _ = call(*ask)
    again, err = call(*ask)
    assert "nothing is judged again" in err
    assert again == out
    call(*ask, "--layers", "1")  # the same question grows by a layer
    assert set(read_run(tmp_path / "run").frame().layer) == {0, 1, 2}
    with pytest.raises(IsoscopeError, match="holds another run, asked with other settings"):
        call(*ask, "--seed", "1")


@pytest.mark.usefixtures("undrawn")
def test_as_json_and_again_from_the_folder(
    call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--layers", "1", "--with", "rogue", "--out", tmp_path / "run", "--json")
    out, _ = call(tiny_bert, "--pairs", files["pairs"], "--fit", files["fit"], *options)
    told = json.loads(out)
    assert {each["verdict"] for each in told["verdicts"]} <= {"helped", "hurt", "no difference"}
    assert {row["model"] for row in told["rows"]} == {"as it is", "rogue"}
    assert told["folder"] == str(tmp_path / "run")
    folder = read_run(tmp_path / "run")
    finish(folder, json=False)
    assert "layer 1" in capsys.readouterr().out
    found = effects(folder.frame())
    assert finding(found, folder.run.measures).startswith("layer 1, Spearman, pairs")
    assert headline(found, folder.run.measures).startswith("Layer 1: Spearman, pairs is ")


@pytest.mark.usefixtures("undrawn")
def test_repairs_are_fitted_on_the_probe_s_texts_where_nothing_is_said(
    call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path
) -> None:
    out, _ = call(tiny_bert, "--labels", files["labels"], "--with", "whiten:4", "--out", tmp_path / "run")
    assert "accuracy of a probe, labels" in out


@pytest.mark.usefixtures("undrawn")
def test_overlap_may_be_left_out(call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path) -> None:
    first = files["pairs"].read_text().splitlines()[1].split("\t")[0]
    files["fit"].write_text(f"{files['fit'].read_text()}\n{first}\n")
    ask = (
        tiny_bert,
        "--pairs",
        files["pairs"],
        "--fit",
        files["fit"],
        "--with",
        "centre",
        "--out",
        tmp_path / "run",
    )
    with pytest.raises(
        IsoscopeError, match="1 of the 71 texts that repairs are fitted on are judged as well"
    ):
        call(*ask)
    assert not (tmp_path / "run").exists()
    _, err = call(*ask, "--leave-out-overlap")
    assert "1 of the 71 texts" in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there is no task: give --pairs, --labels, --retrieve or --text"),
        (("--pairs", "pairs", "--with", "whitten"), "did you mean 'whiten'"),
        (("--pairs", "pairs"), "give --fit"),
        (("--pairs", "pairs", "--fit", "fit", "--with", "centre;whiten:25"), "more dimensions than the 24"),
        (("--pairs", "pairs", "--fit", "fit", "--pool", "cls", "--layers", "0"), "all have the same vector"),
        (("--pairs", "labels", "--fit", "fit"), "pairs without scores"),
        (("--labels", "one class", "--fit", "fit"), "two classes or more"),
        (("--labels", "labels", "--readers", "rigde"), "no reader is called 'rigde'"),
        (("--text", "fit", "--fit", "fit"), "which is judged"),
    ],
)
def test_mistakes_are_one_sentence(
    call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    files["one class"] = tmp_path / "one.tsv"
    files["one class"].write_text("".join(f"a\ttext {i}\n" for i in range(30)))
    told = [files.get(word, word) for word in words]
    with pytest.raises(IsoscopeError, match=said) as found:
        call(tiny_bert, *told, "--out", tmp_path / "run")
    assert str(found.value).count("\n") == 0
    assert len(list((tmp_path / "run").rglob("*.parquet"))) == 0


@pytest.mark.usefixtures("undrawn")
def test_a_reader_that_tells_all_apart_before_and_not_after(
    call: Call, files: dict[str, Path], tiny_bert: Path, tmp_path: Path
) -> None:
    few = files["labels"].read_text().splitlines()[:30]  # of 24 dimensions: separable, and not of 2
    files["labels"].write_text("\n".join(few))
    ask = ("--labels", files["labels"], "--readers", "standardised,unpenalised", "--with", "centre;whiten:2")
    out, _ = call(tiny_bert, *ask, "--layers", "output", "--out", tmp_path / "run", "--json")
    told = {(each["measure"], each["repair"]): each for each in json.loads(out)["verdicts"]}
    assert told["accuracy.labels", "centre"]["verdict"] == "cannot matter"
    for repair in ("centre", "whiten:2"):
        found = told["accuracy_unpenalised.labels", repair]
        assert found["verdict"] != "cannot matter"
        assert "should not matter" not in found["said"]
    rows = read_run(tmp_path / "run").frame()
    own = rows[rows.measure == "accuracy_unpenalised.labels"].set_index("model").note
    assert "told apart without an error" in own["as it is"]
    assert "told apart" not in own["whiten:2"]
