"""`isoscope train` as a person types it: what is kept, and one sentence for everything that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isoscope.lab.model import cnn
from isoscope.lab.model.norms import NORMS
from isoscope.lab.penalties.table import PENALTIES
from isoscope.lab.tasks.table import TASKS
from isoscope.lab.variants.table import VARIANTS
from isoscope.results.store import read_run
from tests.cli.test_errors import sentence
from tests.conftest import Answer

Isoscope = Callable[..., Answer]
TINY = ("--layers", 1, "--width", 8, "--heads", 2, "--length", 8, "--steps", 2, "--batch-size", 2)


def test_it_trains_and_keeps_all(isoscope: Isoscope, tmp_path: Path) -> None:
    asked = (
        "train", "characters", "--attention", "qk-norm", "--norm", "post",
        "--penalty", "locater=.1,target=1+entropy=1,target=.5", "--bfloat16", *TINY,
        "--out", tmp_path / "run",
    )  # fmt: skip
    answer = isoscope(*asked)
    assert answer.code == 0, answer.err
    assert "report.html" in answer.out
    there = {file.name for file in (tmp_path / "run").rglob("*") if file.is_file()}
    assert {"run.json", "state.pt", "step-000000.safetensors", "step-000002.safetensors"} <= there
    rows = read_run(tmp_path / "run").frame()
    assert set(rows.step) == {0, 1, 2}
    assert set(rows.model) == {"characters qk-norm post locater=.1,target=1+entropy=1,target=.5"}
    assert len(rows[rows.measure == "loss"]) == 3
    again = isoscope(*asked)
    assert again.code == 0
    assert again.out == answer.out


def test_a_cnn_and_a_folder_by_default(
    isoscope: Isoscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = isoscope("train", "images", "--model", "cnn", "--checkpoints", 2, *TINY)
    assert answer.code == 0, answer.err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("images-cnn-")
    assert read_run(folder).run.question["norm"] == "batch"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("charakters",), "no task is called 'charakters'; did you mean 'characters'?"),
        (("--attention", "softmx"), "no attention variant is called 'softmx'; did you mean 'softmax'?"),
        (("--norm", "sandwitch"), "no norm is called 'sandwitch'; did you mean 'sandwich'?"),
        (("--penalty", "locatr=1"), "no penalty is called 'locatr'; did you mean 'locater'?"),
        (("--penalty", "locater=much,target=1"), "locater=much"),
        (("--model", "rnn"), "no model is called 'rnn'"),
        (("--model", "cnn"), "a CNN learns the task images; for 'characters' take --model transformer."),
        (("images", "--model", "cnn", "--norm", "pre"), "no norm of a CNN is called 'pre'."),
        (("images", "--model", "cnn", "--attention", "sink"), "a CNN has no attention to be 'sink'"),
        (("--width", "9"), "2 heads do not divide a width of 9; 1, 3, 9 would."),
        (("--attention", "differential", "--width", "6"), "3 dimensions a head are odd"),
        (("--checkpoints", "often"), "--checkpoints is 'log' or a number of steps, 1 or more; got 'often'."),
        (("--device", "abacus"), "device 'abacus' cannot be used here: "),
        (("--data", "/no/such/file.txt"), "no data at '/no/such/file.txt'"),
        (("--data", "short.txt", "--length", "200"), "data 'short.txt' holds 12 items, and one sequence to "),
        (("frames", "--length", "9000"), "recordings of more than 9000 frames"),
        (("--compile", "--penalty", "entropy=1,target=.5"), "compiled code runs out of sight"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    isoscope: Isoscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_text("a short text")
    assert told in sentence(isoscope("train", *TINY, *words, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_other_settings_are_refused(isoscope: Isoscope, tmp_path: Path) -> None:
    isoscope("train", *TINY, "--out", tmp_path / "run")
    answer = isoscope("train", *TINY, "--rate", 0.5, "--out", tmp_path / "run")
    assert sentence(answer) == (
        f"{tmp_path / 'run'} holds another run, asked with other settings (rate); give another --out, or "
        "remove that folder."
    )


def test_a_loss_that_is_no_number(isoscope: Isoscope, tmp_path: Path) -> None:
    answer = isoscope(
        "train", *TINY, "--norm", "none", "--steps", 30, "--rate", 1e12, "--out", tmp_path / "run"
    )
    assert answer.code == 2
    last = answer.err.splitlines()[-1]
    assert last.startswith("isoscope: the ")
    assert "it began in " in last
    assert "Traceback" not in answer.err
    assert 0 in set(read_run(tmp_path / "run").frame().step)
    assert isoscope("report", tmp_path / "run").code == 0


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("variants", [(v.name, v.formula, v.says) for v in VARIANTS]),
        ("norms", [*((n.name, n.formula) for n in NORMS), *cnn.NORMS.items()]),
        ("penalties", [(p.name, p.example) for p in PENALTIES]),
        ("tasks", [(t.name, t.formula, t.says) for t in TASKS]),
    ],
)
def test_the_lab_is_listed(isoscope: Isoscope, what: str, lines: list[tuple[str, ...]]) -> None:
    answer = isoscope("list", what)
    assert answer.code == 0
    for line in lines:
        for word in line:
            assert word in answer.out
