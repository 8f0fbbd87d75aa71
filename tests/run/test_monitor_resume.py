"""A training that is killed and started again: no row that was announced is lost, none is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

import isoscope
from isoscope.errors import IsoscopeError
from isoscope.results import store
from isoscope.run.monitor.monitor import Monitor
from tests.run.training import ids, language, loss_of, probe
from tests.tiers import nightly

STEPS = 4
MEASURES = ["mean_cosine", "mean_norm", "entropy"]


class Killed(BaseException):
    """As a signal: nothing that catches errors catches it."""


def training(out: Path, told: list[int] | Path, steps: int = STEPS) -> pd.DataFrame:
    """A training from its beginning, watched; every announcement is noted, in a list or durably in a file."""

    def note(step: int, summary: object) -> None:
        if isinstance(told, list):
            told.append(step)
        else:
            with told.open("a") as stream:
                stream.write(f"{step}\n")
                stream.flush()
                os.fsync(stream.fileno())

    model = language()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, probe(1), every=1, budget=None, out=out, measures=MEASURES, sinks=[note])
    for step in range(steps):
        monitor.step(step)
        optimiser.zero_grad()
        loss_of(model, ids(4, step)).backward()
        optimiser.step()
    monitor.close()  # not by a context manager: what is killed closes nothing
    return monitor.frame()


def once_each(rows: pd.DataFrame) -> bool:
    return not rows.duplicated(["step", "kind", "layer", "head", "measure"]).any()


@pytest.mark.parametrize("moment", ["half", *nightly("before", "after")])
def test_killed_at_every_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    whole = training(tmp_path / "whole", [])
    real = store.write_whole
    for k in range(1, STEPS + 2):  # the first write is of run.json
        writes = 0

        def write(file: Path, content: bytes, k: int = k) -> None:
            nonlocal writes
            writes += 1
            if writes == k and moment == "before":
                raise Killed
            if writes == k and moment == "half":
                file.with_name(f".{file.name}.{os.getpid()}").write_bytes(content[: len(content) // 2])
                raise Killed
            real(file, content)
            if writes == k:
                raise Killed

        monkeypatch.setattr(store, "write_whole", write)
        out, told = tmp_path / f"run-{k}", list[int]()
        with pytest.raises(Killed):
            training(out, told)
        monkeypatch.setattr(store, "write_whole", real)
        if k > 1:
            assert set(told) <= set(isoscope.read_run(out).frame().step)
        before = len(told)
        rows = training(out, told)
        pd.testing.assert_frame_equal(rows, whole)
        assert once_each(rows)
        assert len(told) == len(set(told)), "announced twice"
        lost = set(range(STEPS)) - set(told)
        # one that was on disk when the blow fell, before it could be announced, is there and stays unsaid
        assert lost == ({k - 2} if moment == "after" and k > 1 else set())
        assert before <= max(k - 2, 0)


def test_what_is_there_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = training(tmp_path / "run", [], steps=3)
    calls = []
    monkeypatch.setattr("isoscope.run.monitor.monitor.untouched", _counting(calls))
    told: list[int] = []
    again = training(tmp_path / "run", told, steps=4)
    assert len(calls) == 2  # to look at the model first, and at step 3
    assert told == [3]
    pd.testing.assert_frame_equal(again[again.step < 3], first)


def _counting(calls: list[int]) -> object:
    from isoscope.run.monitor.untouched import untouched

    def counted(*given: object) -> object:
        calls.append(1)
        return untouched(*given)  # type: ignore[arg-type]

    return counted


def test_another_question_and_no_resuming(tmp_path: Path) -> None:
    training(tmp_path / "run", [], steps=1)
    with pytest.raises(
        IsoscopeError, match=r"holds another run, asked with other settings \(probe, sequences\)"
    ):
        Monitor(language(), probe(2), out=tmp_path / "run", measures=MEASURES)
    with pytest.raises(IsoscopeError, match="holds a run; resume=True takes it up, or give another out"):
        Monitor(language(), probe(1), out=tmp_path / "run", measures=MEASURES, resume=False)
    Monitor(language(), probe(1), out=tmp_path / "run", measures=MEASURES, every=7, budget=0.5)


def test_a_strange_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(IsoscopeError, match="it holds other files"):
        Monitor(language(), probe(1), out=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.nightly
def test_killed_for_good_three_times(tmp_path: Path) -> None:
    """Real processes, ended by SIGKILL while they write; then one that comes to the end."""
    whole = training(tmp_path / "whole", [], steps=12)
    out, told = tmp_path / "run", tmp_path / "told.txt"
    told.touch()
    code = (
        "import sys; from pathlib import Path; from tests.run.test_monitor_resume import training; "
        "training(Path(sys.argv[1]), Path(sys.argv[2]), steps=12)"
    )
    announced = 0
    for more in (3, 1, 2):
        child = subprocess.Popen([sys.executable, "-c", code, str(out), str(told)])
        while len(told.read_text().split()) < announced + more:
            assert child.poll() is None, "it ended by itself"
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        steps = list(map(int, told.read_text().split()))
        announced = len(steps)
        kept = isoscope.read_run(out).frame()
        assert set(steps) <= set(kept.step)
        assert once_each(kept)
    assert announced < 12
    rows = training(out, told, steps=12)
    steps = list(map(int, told.read_text().split()))
    assert len(steps) == len(set(steps))
    assert len(steps) >= 12 - 3  # at each blow at most one was on disk and not yet announced
    pd.testing.assert_frame_equal(rows, whole)
