"""The verbs as a person types them: what is printed, what is kept, what a second call does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from isoscope import MEASURES, describe, read_run
from tests.conftest import Answer
from tests.models import modal

Isoscope = Callable[..., Answer]


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32) + 0.5


def test_measure_prints_a_table_words_and_the_path_of_the_page(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path
) -> None:
    answer = isoscope("measure", tiny_bert, "--limit", 12, "--out", tmp_path / "run")
    assert answer.code == 0
    for word in ("layer.0", "layer.2", "cosine between", "mean cosine between sequences", "report.html"):
        assert word in answer.out
    assert (tmp_path / "run" / "report.html").stat().st_size > 1e5
    told = " ".join(answer.err.split())
    assert re.fullmatch(
        r"note: all text is from one document: what intervals take for independent is 2 neighbouring "
        r"chunks of one text \(6\) "
        r"(note: mean_cosine_\w+, relative_drift_\w+: undefined, too few tokens [\w ,]+ ?)*"
        r"(note: position_share, [\w ,]+: undefined, attention is even: [\w .]+)?",
        told,
    )


def test_a_second_call_measures_nothing_again(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    asked = ("measure", tiny_bert, "--limit", 8, "--out", tmp_path / "run")
    first = isoscope(*asked)
    kept = next((tmp_path / "run" / "rows").iterdir())
    written = kept.stat().st_mtime_ns
    second = isoscope(*asked)
    assert second.code == 0
    assert "nothing is measured again" in second.err
    assert second.out == first.out
    assert kept.stat().st_mtime_ns == written


def test_other_settings_do_not_mix_into_a_run(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    isoscope("measure", tiny_bert, "--limit", 8, "--out", tmp_path / "run")
    answer = isoscope("measure", tiny_bert, "--limit", 9, "--out", tmp_path / "run")
    assert answer.code == 2
    assert "holds another run, asked with other settings (data_hash, sequences, tokens, units)" in answer.err


def test_the_default_folder_is_named_after_the_model_and_the_question(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for limit in (8, 9):
        assert isoscope("measure", tiny_bert, "--limit", limit, "--measures", "drift").code == 0
    assert len(list((tmp_path / "runs").glob("*tiny-bert-*"))) == 2


def test_json_is_for_machines(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    answer = isoscope(
        "measure", tiny_bert, "--limit", 8, "--layers", "1,2", "--measures", "drift,isoscore", "--json",
        "--out", tmp_path / "run",
    )  # fmt: skip
    told = json.loads(answer.out)
    assert [(row["layer"], row["measure"]) for row in told["rows"]] == [
        (1, "drift"), (1, "isoscore"), (2, "drift"), (2, "isoscore"),
    ]  # fmt: skip
    kept = read_run(tmp_path / "run").frame()
    assert kept.value.tolist() == pytest.approx([row["value"] for row in told["rows"]], rel=1e-12)
    assert told["rows"][0]["null"] > 0
    assert told["rows"][1]["low"] is None


def test_report_writes_the_page_again(isoscope: Isoscope, tiny_bert: Path, tmp_path: Path) -> None:
    isoscope("measure", tiny_bert, "--limit", 8, "--out", tmp_path / "run")
    page = tmp_path / "run" / "report.html"
    before = page.read_text()
    page.unlink()
    answer = isoscope("report", tmp_path / "run")
    assert answer.code == 0
    assert page.read_text() == before


def test_list_measures_names_every_one(isoscope: Isoscope) -> None:
    answer = isoscope("list", "measures")
    assert answer.code == 0
    assert "participation" in answer.out
    assert "rankme" in answer.out


@pytest.mark.parametrize(
    "form", [".npy", ".npz", ".parquet", ".safetensors", ".csv", "columns.parquet", "bare.csv"]
)
def test_a_cloud_is_read_from_every_format(
    isoscope: Isoscope, tmp_path: Path, points: np.ndarray, form: str
) -> None:
    file = tmp_path / f"vectors{form}"
    match form:
        case ".npy":
            np.save(file, points)
        case ".npz":
            np.savez(file, points)
        case ".safetensors":
            save_file({"points": torch.from_numpy(points)}, file)
        case ".parquet":
            pd.DataFrame({"name": ["x"] * len(points), "vector": list(points)}).to_parquet(file)
        case "columns.parquet":
            pd.DataFrame(points, columns=list("abcde")).assign(name="x").to_parquet(file)
        case ".csv":
            pd.DataFrame(points, columns=list("abcde")).to_csv(file, index=False)
        case "bare.csv":
            pd.DataFrame(points).to_csv(file, index=False, header=False)
    told = json.loads(isoscope("cloud", file, "--json", "--measures", "mean_cosine,isoscore").out)
    wanted = describe(points, measures=["mean_cosine", "isoscore"]).frame().value
    assert [row["value"] for row in told["rows"]] == pytest.approx(wanted.tolist(), rel=1e-6)


def test_a_cloud_with_its_vectors_in_columns(isoscope: Isoscope, tmp_path: Path, points: np.ndarray) -> None:
    np.save(tmp_path / "upright.npy", points)
    np.save(tmp_path / "lying.npy", points.T)
    upright = json.loads(isoscope("cloud", tmp_path / "upright.npy", "--json").out)
    lying = json.loads(isoscope("cloud", tmp_path / "lying.npy", "--transpose", "--json").out)
    assert [row["value"] for row in upright["rows"]] == [row["value"] for row in lying["rows"]]


def test_a_cloud_is_kept_when_asked(isoscope: Isoscope, tmp_path: Path, points: np.ndarray) -> None:
    np.save(tmp_path / "vectors.npy", points)
    answer = isoscope("cloud", tmp_path / "vectors.npy", "--out", tmp_path / "run")
    assert answer.code == 0
    assert "cloud" in answer.out
    assert (read_run(tmp_path / "run").frame().kind == "cloud").all()


@pytest.mark.nightly
def test_the_demo_gives_the_same_rows_twice_and_resumes(isoscope: Isoscope, tmp_path: Path) -> None:
    asked = ("demo", "--steps", 16, "--out")
    first = isoscope(*asked, tmp_path / "one")
    assert first.code == 0
    assert "step" in first.out
    isoscope(*asked, tmp_path / "two")
    one, two = (read_run(tmp_path / name).frame() for name in ("one", "two"))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    lost = sorted((tmp_path / "two" / "rows").iterdir())[-1]
    lost.unlink()
    isoscope(*asked, tmp_path / "two")
    pd.testing.assert_frame_equal(one, read_run(tmp_path / "two").frame(), check_exact=True)
    loss = one[one.measure == "loss"].set_index("step").value
    assert loss[16] < loss[0]


def test_a_column_that_numbers_the_rows_is_no_dimension(isoscope: Isoscope, tmp_path: Path) -> None:
    points = np.random.default_rng(1).normal(size=(200, 16))
    table = pd.DataFrame(points).add_prefix("x")
    table.to_csv(tmp_path / "index.csv")
    table.assign(id=range(1, 201), name="a").to_parquet(tmp_path / "id.parquet")
    wanted = describe(points, measures=["mean_cosine"]).frame().value[0]
    for file, left in (("index.csv", "Unnamed: 0"), ("id.parquet", "id, name")):
        answer = isoscope("cloud", tmp_path / file, "--measures", "mean_cosine", "--json")
        assert json.loads(answer.out)["rows"][0]["value"] == pytest.approx(wanted)
        assert f"16 columns of {file} are dimensions; left out: {left}" in answer.err


def test_a_cloud_reads_the_same_from_every_format(
    isoscope: Isoscope, tmp_path: Path, points: np.ndarray
) -> None:
    np.save(tmp_path / "a.npy", points)
    pd.DataFrame(points).add_prefix("x").to_csv(tmp_path / "a.csv", index=False)
    np.save(tmp_path / "b.NPY.npy", points.astype(np.float64))
    split = []
    for file in ("a.npy", "a.csv", "b.NPY.npy"):
        told = json.loads(
            isoscope("cloud", tmp_path / file, "--measures", "participation_ratio_split", "--json").out
        )
        split.append(told["rows"][0]["value"])
    assert split == pytest.approx([split[0]] * 3, rel=1e-6)


def test_a_narrow_terminal_shows_whole_cells(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isoscope.cli.screen.terminal.screen_width", lambda **_: 80)
    out = isoscope("measure", tiny_bert, "--limit", 12, "--out", tmp_path / "run").out
    assert "…" not in out
    assert "a wider terminal shows more" in " ".join(out.split())


@pytest.mark.nightly
def test_a_closed_pipe_loses_nothing(tiny_bert: Path, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("isoscope")
    run = subprocess.Popen(
        [command, "measure", tiny_bert, "--limit", "8", "--out", tmp_path / "run"], stdout=subprocess.PIPE
    )
    assert run.stdout is not None
    run.stdout.close()
    run.wait()
    rows = read_run(tmp_path / "run").frame()
    default = [measure for measure in MEASURES if not measure.extra]
    at = [sum(measure.at == kind for measure in default) for kind in ("layer", "attention")]
    lacking = 2 + 2  # nothing comes before the first layer, for CKA; what a softmax adds up to is not told
    assert len(rows) == 3 * at[0] + 2 * at[1] - lacking


@pytest.mark.nightly
def test_ctrl_c_ends_with_a_sentence_and_the_demo_goes_on(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("isoscope"), "demo", "--steps", "64", "--out", tmp_path / "run"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not (rows := list(tmp_path.glob("run/rows/*.parquet"))):
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    _, told = run.communicate()
    assert run.returncode == 130
    last = told.splitlines()[-1]
    assert last == "isoscope: stopped; what was finished is kept, and the same command goes on."
    first = rows[0].stat().st_mtime_ns
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert rows[0].stat().st_mtime_ns == first
    assert read_run(tmp_path / "run").frame().step.nunique() == 6


def test_undefined_readings_are_told_in_the_terminal(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path
) -> None:
    answer = isoscope("measure", tiny_bert, "--limit", 8, "--memory", "1KB", "--out", tmp_path / "run")
    assert "isoscore, isoscore_star, participation_ratio," in answer.err
    assert "raise --memory or choose fewer --layers" in " ".join(answer.err.split())


@pytest.mark.parametrize("seed", [-1, 2**70])
def test_any_seed_will_do(isoscope: Isoscope, tmp_path: Path, points: np.ndarray, seed: int) -> None:
    np.save(tmp_path / "vectors.npy", points)
    assert isoscope("cloud", tmp_path / "vectors.npy", "--seed", seed).code == 0


def test_compare_puts_text_images_sound_and_a_cnn_on_one_page(
    isoscope: Isoscope, tiny_bert: Path, tmp_path: Path
) -> None:
    isoscope("measure", tiny_bert, "--limit", 12, "--out", tmp_path / "text")
    models = [modal.save(family, tmp_path / family) for family in ("vit", "hubert", "resnet")]
    asked = ("compare", tmp_path / "text", *models, "--limit", 10, "--out", tmp_path / "together")
    answer = isoscope(*asked)
    assert answer.code == 0
    kept = read_run(tmp_path / "together").frame()
    assert set(kept.model) == {str(place) for place in (tmp_path / "text", *models)} | {"all models"}
    assert "does the mean cosine follow the drift" in answer.out
    assert "spearman" in (tmp_path / "together" / "report.html").read_text()
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "together" / "rows").iterdir()}
    assert isoscope(*asked).code == 0
    again = {file: file.stat().st_mtime_ns for file in before if "comparison" not in file.name}
    assert again.items() <= before.items()
    assert isoscope("compare", tmp_path / "text", tmp_path / "text").code == 2
