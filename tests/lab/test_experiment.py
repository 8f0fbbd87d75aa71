"""An experiment that is killed, at every write and by real signals, goes on as if nothing had been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from isoscope.errors import IsoscopeError
from isoscope.lab.train.experiment import Experiment, Underway
from isoscope.lab.train.training import Diverged, Recipe
from isoscope.lab.variants.table import VARIANTS
from isoscope.models.source import place_for
from isoscope.results import store
from isoscope.results.store import read_run
from tests.tiers import nightly

TINY = Experiment(layers=1, width=8, heads=2, length=8, checkpoints="2", recipe=Recipe(steps=4, batch_size=2))
SITE = ["step", "kind", "layer", "head", "measure"]


class Killed(BaseException):
    """As a signal: nothing that catches errors catches it."""


def make(experiment: Experiment, out: Path) -> Underway:
    underway = Underway(experiment, out, device="cpu")  # where the same bits are promised
    underway.go_on()
    underway.monitor.close()  # not by a context manager: what is killed closes nothing
    return underway


def weights(out: Path) -> dict[str, dict[str, torch.Tensor]]:
    return {file.name: load_file(file) for file in sorted((out / "checkpoints").glob("*.safetensors"))}


def assert_same(out: Path, whole: Path) -> None:
    """The same weights at every checkpoint, the same rows, none twice; nothing else is left behind."""
    mine, theirs = weights(out), weights(whole)
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name].keys() == theirs[name].keys()
        assert all(torch.equal(mine[name][key], theirs[name][key]) for key in mine[name]), name
    rows, all_rows = read_run(out).frame(), read_run(whole).frame()
    assert not rows.duplicated(SITE).any()
    pd.testing.assert_frame_equal(rows, all_rows)
    there = {file.relative_to(out) for file in out.rglob("*") if not file.name.startswith(".")}
    assert there == {file.relative_to(whole) for file in whole.rglob("*")}


@pytest.mark.parametrize("attention", nightly("softmax", "centred", "sigma"))
def test_killed_at_every_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attention: str) -> None:
    experiment = replace(TINY, attention=attention)
    real, count = store.write_whole, 0

    def counted(file: Path, content: bytes) -> None:
        nonlocal count
        count += 1
        real(file, content)

    monkeypatch.setattr(store, "write_whole", counted)
    make(experiment, tmp_path / "whole")
    assert count == 1 + 3 * 4  # run.json; at three steps points, rows, weights and state
    for k in range(1, count + 1):
        writes = 0
        moment = ("before", "half", "after")[k % 3]

        def write(file: Path, content: bytes, k: int = k, moment: str = moment) -> None:
            nonlocal writes
            writes += 1
            if writes == k and moment == "half":
                file.with_name(f".{file.name}.{os.getpid()}").write_bytes(content[: len(content) // 2])
            if writes != k or moment == "after":
                real(file, content)
            if writes == k:
                raise Killed

        monkeypatch.setattr(store, "write_whole", write)
        with pytest.raises(Killed):
            make(experiment, tmp_path / f"run-{k}")
        monkeypatch.setattr(store, "write_whole", real)
        make(experiment, tmp_path / f"run-{k}")
        assert_same(tmp_path / f"run-{k}", tmp_path / "whole")


LONGER = replace(TINY, checkpoints="1", recipe=replace(TINY.recipe, steps=10))
ARGUMENTS = "replace(LONGER, attention=sys.argv[2]), Path(sys.argv[1])"
CODE = (
    "import sys; from dataclasses import replace; from pathlib import Path; "
    f"from tests.lab.test_experiment import LONGER, make; make({ARGUMENTS})"
)


@pytest.mark.nightly
@pytest.mark.parametrize("attention", ["centred"])
def test_killed_for_good_three_times(tmp_path: Path, attention: str) -> None:
    """Real processes, ended by SIGKILL while they train and write; then one that comes to the end."""
    experiment, out = replace(LONGER, attention=attention), tmp_path / "run"
    make(experiment, tmp_path / "whole")
    for seen in (2, 5, 8):
        child = subprocess.Popen([sys.executable, "-c", CODE, str(out), attention])
        while len(list((out / "checkpoints").glob("step-*"))) < seen:
            assert child.poll() is None, "it ended by itself"
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert (out / "state.pt").exists()
    assert len(weights(out)) < 11
    make(experiment, out)
    assert_same(out, tmp_path / "whole")


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    make(TINY, tmp_path / "run")
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").rglob("*") if file.is_file()}
    make(TINY, tmp_path / "run")
    assert files == {
        file: file.stat().st_mtime_ns for file in (tmp_path / "run").rglob("*") if file.is_file()
    }


@pytest.mark.parametrize("attention", [variant.name for variant in VARIANTS])
def test_every_variant_is_watched(tmp_path: Path, attention: str) -> None:
    rows = make(replace(TINY, attention=attention), tmp_path).monitor.frame()
    assert set(rows.step) == {0, 2, 4}
    loss = rows[rows.measure == "loss"]
    assert len(loss) == 3
    assert loss.value.between(4, 5).all()
    attends = rows.kind.isin(["attention", "mixed_attention"])
    assert attends.any() == (attention != "convolution")
    assert rows[rows.measure.isin(["mean_cosine_between", "isoscore"])].value.notna().all()


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_a_cnn_learns_pictures(tmp_path: Path, norm: str) -> None:
    recipe = Recipe(steps=100, batch_size=32, rate=1e-2)
    experiment = Experiment("images", "cnn", norm=norm, layers=2, width=16, checkpoints="99", recipe=recipe)
    underway = make(experiment, tmp_path)
    rows = underway.monitor.frame()
    assert set(rows.kind) == {"layer", "training"}
    assert set(rows[rows.kind == "layer"].layer) == {0, 1, 2}
    assert underway.training.held_loss() < 0.7 * underway.training.lesson.chance
    normed = sum(type(part).__name__ == "BatchNorm2d" for part in underway.model.modules())
    assert normed == (4 if norm == "batch" else 0)


def test_what_is_no_word_is_refused_before_data_is_read() -> None:
    for knobs, words in (
        ({"task": "charakters"}, "no task is called 'charakters'; did you mean 'characters'?"),
        ({"attention": "softmaxx"}, "no attention variant is called 'softmaxx'; did you mean 'softmax'?"),
        ({"norm": "pree"}, "no norm is called 'pree'; did you mean 'pre'?"),
        ({"norm": "batch"}, "no norm is called 'batch'. There are:"),
        ({"model": "rnn"}, "no model is called 'rnn'; did you mean 'cnn'?"),
        ({"model": "cnn"}, "a CNN learns the task images; for 'characters' take --model transformer."),
        ({"model": "cnn", "task": "images"}, "no norm of a CNN is called 'pre'. There are: batch, none."),
        ({"model": "cnn", "task": "images", "norm": "none", "attention": "sigmoid"}, "no attention to be"),
        ({"width": 10}, "4 heads do not divide a width of 10; 1, 2, 5, 10 would."),
        ({"checkpoints": "often"}, "--checkpoints is 'log' or a number of steps"),
        ({"penalty": "locator=.1"}, "did you mean 'locater'?"),
    ):
        with pytest.raises(IsoscopeError) as told:
            Experiment(data="/no/such/data", **knobs)  # type: ignore[arg-type]
        assert words in str(told.value)


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    make(TINY, tmp_path / "run")
    for knobs, differs in (
        ({"recipe": replace(TINY.recipe, rate=1e-4, seed=3)}, "rate, seed"),
        ({"norm": "post"}, "norm"),
        ({"length": 9}, "length, probe"),
    ):
        with pytest.raises(
            IsoscopeError, match=rf"asked with other settings \(.*{differs}.*\); give another"
        ):
            Underway(replace(TINY, **knobs), tmp_path / "run")  # type: ignore[arg-type]


def test_data_that_changed_under_its_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("to be or not to be " * 9)
    make(replace(TINY, data=str(file)), tmp_path / "run")
    file.write_text("to be or not to be " * 8 + "that is the question")
    with pytest.raises(IsoscopeError, match=r"other settings \(data_hash"):
        Underway(replace(TINY, data=str(file)), tmp_path / "run")


def test_a_loss_that_is_no_number_keeps_everything(tmp_path: Path) -> None:
    """What went before is there, and the same command says the same again."""
    wild = replace(TINY, norm="none", recipe=Recipe(steps=30, batch_size=2, rate=1e12, warmup=1))
    for _ in range(2):
        underway = Underway(wild, tmp_path, on_alarm=lambda alarm: None)
        with pytest.raises(Diverged, match=r"at step \d+, and it began in"):
            underway.go_on()
        underway.monitor.close()
        assert 0 in set(read_run(tmp_path).frame().step)
        assert "step-000000.safetensors" in weights(tmp_path)
        assert (tmp_path / "state.pt").exists()


def test_where_to_train() -> None:
    assert str(place_for("cpu")) == "cpu"
    assert str(place_for(None)) in ("cpu", "cuda")
    for nonsense in ("tpu9", "cuda:-3", "meta"):
        with pytest.raises(IsoscopeError, match=f"device '{nonsense}' cannot be used here: "):
            place_for(nonsense)
