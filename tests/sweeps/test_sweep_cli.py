"""`isoscope sweep` from end to end: what it makes, what it says, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from isoscope.cli.screen.sweep import units
from isoscope.results.store import read_run
from isoscope.sweeps.find.checkpoints import in_folder
from isoscope.sweeps.work.job import Outcome
from isoscope.sweeps.work.local import Started
from tests.conftest import Answer
from tests.sweeps.swept import asides, in_rows_order

FEW = ("--measures", "mean_cosine_between,mean_norm,normalised_entropy")
Call = Callable[..., Answer]


@pytest.fixture
def short(trained: Path, tmp_path: Path) -> Path:
    """The same training with every eighth of its checkpoints."""
    out = tmp_path / "trained"
    (out / "checkpoints").mkdir(parents=True)
    shutil.copy(trained / "run.json", out)
    for each in in_folder(trained)[::8]:
        shutil.copy(each.address, out / "checkpoints")
    return out


def test_a_sweep_and_again(isoscope: Call, short: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = isoscope("sweep", short, *FEW, "--workers", "0", "--heads", "--out", out)
    assert first.code == 0, first.err
    count = len(in_folder(short))
    assert count == 5
    lines = first.err.splitlines()
    assert f"{count} checkpoints: no two are the same, none is broken, all are in order" in first.err
    assert [line for line in lines if line.startswith("1 of 5: step-000000, ")]
    assert [line for line in lines if line.startswith("5 of 5: step-000040, ")]
    assert "5 of 5 checkpoints measured in" in first.err
    rows = read_run(out).frame()
    assert set(rows[rows.kind == "layer"].step) == {each.step for each in in_folder(short)}
    assert set(rows.model) == {str(short)}
    assert "mean cosine between" in first.out
    assert (out / "report.html").exists()
    assert str(out / "report.html") in first.out.replace("\n", "")
    second = isoscope("sweep", short, *FEW, "--workers", "0", "--heads", "--out", out, "--json")
    assert second.code == 0
    assert "0 of 5 checkpoints measured" in second.err
    assert "5 were there already" in second.err
    told = json.loads(second.out)
    assert len(told["rows"]) == len(rows)
    assert not asides(out)


def test_what_is_asked_otherwise_is_another_run(isoscope: Call, short: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert isoscope("sweep", short, *FEW, "--workers", "0", "--out", out).code == 0
    other = isoscope("sweep", short, *FEW, "--workers", "0", "--heads", "--out", out)
    assert other.code == 2
    assert "holds another run, asked with other settings (heads)" in other.err


def test_it_grows_with_its_training(isoscope: Call, trained: Path, short: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    call = ("sweep", short, *FEW, "--workers", "0", "--out", out)
    assert isoscope(*call).code == 0
    shutil.copy(in_folder(trained)[3].address, short / "checkpoints")
    again = isoscope(*call)
    assert "1 of 6 checkpoints measured" in again.err
    assert "5 were there already" in again.err


def test_shares_make_the_whole(isoscope: Call, short: Path, tmp_path: Path) -> None:
    call = ("sweep", short, *FEW, "--workers", "0")
    assert isoscope(*call, "--out", tmp_path / "whole").code == 0
    for share in ("0/3", "1/3", "2/3"):
        assert isoscope(*call, "--out", tmp_path / "shares", "--shard", share).code == 0
    whole, shares = (in_rows_order(read_run(tmp_path / name).frame()) for name in ("whole", "shares"))
    pd.testing.assert_frame_equal(whole, shares)


def test_what_is_wrong_is_told_before_in_the_rows_and_at_the_end(
    isoscope: Call, short: Path, tmp_path: Path
) -> None:
    files = [Path(each.address) for each in in_folder(short)]
    good = files[2].read_bytes()
    files[2].write_bytes(files[1].read_bytes())  # a twin
    files[4].write_bytes(files[4].read_bytes()[:400])  # cut short
    call = ("sweep", short, *FEW, "--workers", "0", "--out", tmp_path / "run")
    strict = isoscope(*call, "--strict")
    assert strict.code == 2
    assert "3 of 5 checkpoints are not what they should be; nothing was measured" in strict.err
    assert not list((tmp_path / "run" / "rows").iterdir())
    answer = isoscope(*call)
    assert answer.code == 0, answer.err
    assert "3 of 5 checkpoints are not what they should be" in answer.err
    assert "twin" in answer.err
    assert "broken" in answer.err
    assert "1 failed, and the same command tries them again" in answer.err
    kept = read_run(tmp_path / "run")
    rows, found = kept.frame(), {unit: str(known.get("findings")) for unit, known in kept.facts().items()}
    for one, other in ((1, 2), (2, 1)):
        assert len(rows[(rows.revision == files[one].stem) & (rows.measure == "mean_norm")])
        assert f"the same, bit for bit, as those of {files[other].stem}" in found[files[one].stem]
    assert rows[rows.revision == files[4].stem].measure.tolist() == ["failed"]
    assert found[files[0].stem] == "[]"
    files[4].write_bytes(files[3].read_bytes())  # now a twin of one that was measured already
    files[2].write_bytes(good)
    again = isoscope(*call)
    assert "2 of 5 checkpoints measured" in again.err
    assert "3 were there already" in again.err
    facts = read_run(tmp_path / "run").facts()
    doubled = {unit for unit, known in facts.items() if "bit for bit" in str(known.get("findings"))}
    assert doubled == {files[3].stem, files[4].stem}
    assert not asides(tmp_path / "run")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no folder 'nowhere' here; of a hub id say which revisions: --revisions"),
        (("{folder}", "--revisions", "step{0,1}"), "is a folder, and only hub ids have revisions"),
        (("x/y", "--revisions", "a", "--all-revisions"), "exclude each other; give one of them"),
        (("{folder}", "--what", "wait"), "no what is called 'wait'"),
        (("{folder}", "--engine", "dask"), "no engine is called 'dask'"),
        (("{folder}", "--shard", "2/2"), "--shard is i/n with i from 0 to n − 1, such as 0/4; got '2/2'."),
        (("{folder}", "--measures", "beauty"), "no measure is called 'beauty'"),
        (("{empty}",), "holds no checkpoints: looked for"),
        (("{folder}", "--disk-budget", "much"), "'much' is no size of memory"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    isoscope: Call, short: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    given = [
        word.format(folder=short, empty=tmp_path / "empty") if "step{" not in word else word for word in words
    ]
    answer = isoscope("sweep", *given, "--out", tmp_path / "run")
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.startswith("isoscope: ")
    assert not (tmp_path / "run").exists()


def test_without_ray_it_says_what_to_install(
    isoscope: Call, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    answer = isoscope("sweep", short, *FEW, "--engine", "ray", "--out", tmp_path / "run")
    assert answer.code == 2
    assert "pip install 'isoscope[ray]'" in answer.err


def living(group: int) -> list[str]:
    """The processes of a group that are not merely waiting to be buried."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, own, *_ = stat.read_text().rpartition(")")[2].split()
            if int(own) == group and state != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
    return found


def test_control_c_leaves_what_is_done_and_no_process(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = "from isoscope.cli.main import main; main()"
    words = [sys.executable, "-c", code, "sweep", str(trained), *FEW, "--workers", "2", "--out", str(out)]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while len(list((out / "rows").glob("*.parquet"))) < 3:
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all processes of it
    _, told = running.communicate(timeout=30)
    assert running.returncode == 130
    assert b"stopped; what was finished is kept, and the same command goes on." in told
    assert b"Traceback" not in told
    ends = time.monotonic() + 5
    while left := living(running.pid):
        assert time.monotonic() < ends, left
        time.sleep(0.05)
    rows = read_run(out).frame()
    assert 3 <= rows.step.nunique() < 33
    assert "failed" not in set(rows.measure)


def test_units_are_told_when_they_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    with units("sweep of x", 5, 1) as tell:
        for event in (Started("a"), Started("b"), Outcome("a", 10, 2.5, rows=12)):
            tell(event)
        tell(Outcome("b", 20, 3.0, failed="it is [cut] short"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["2 of 5: a, 12 rows, 2.5 s", "3 of 5: b, failed: it is [cut] short, 3.0 s"]
    assert (
        "1 of 5 checkpoints measured in 0:00:0" in lines[2] and "1 were there already, 1 failed" in lines[2]
    )
    assert lines[3:] == ["failed: b: it is [cut] short"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--data", "nowhere.txt"), "no data at 'nowhere.txt'"),
        (("--dtype", "int3"), "no dtype is called 'int3'"),
        (("--device", "moon"), "device 'moon' cannot be used here"),
    ],
)
def test_what_is_wrong_for_all_is_said_before_the_first(
    isoscope: Call, trained: Path, tmp_path: Path, options: tuple[str, str], says: str
) -> None:
    answer = isoscope("sweep", trained, *options, "--out", tmp_path / "out")
    assert answer.code == 2
    assert says in answer.err
    assert not (tmp_path / "out").exists()


def test_where_none_can_be_measured_it_is_an_error(isoscope: Call, tmp_path: Path) -> None:
    (tmp_path / "all" / "checkpoint-3").mkdir(parents=True)
    answer = isoscope("sweep", tmp_path / "all", "--workers", "0", "--out", tmp_path / "out")
    assert answer.code == 2
    assert "none of 1 checkpoints could be measured" in answer.err
    assert list(read_run(tmp_path / "out").frame().measure) == ["failed"]
