"""`isoscope watch` as a person types it: beside a real training, ended by signals, refused in a sentence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import pytest

from isoscope.cli.watch import Remembered, page_text
from isoscope.errors import IsoscopeError
from isoscope.papers.claims import failed
from isoscope.results.run import Run
from isoscope.results.store import open_run
from tests.cli.test_errors import sentence
from tests.conftest import Answer
from tests.lab.test_contrast_fit import made as trials
from tests.show.made_sweep import a_sweep
from tests.show.made_training import a_training, facts, watched
from tests.show.watching import until, version, write_step
from tests.tiers import nightly

Isoscope = Callable[..., Answer]
COMMAND = Path(sys.executable).with_name("isoscope")
TINY = ("--layers", 1, "--width", 8, "--heads", 2, "--length", 8, "--batch-size", 2)
SOON = 5.0  # seconds from a row's landing to its being served


@contextmanager
def typed(*words: object) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, which is ended at the end of the block if it has not by itself."""
    beside = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [str(COMMAND), *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=beside) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def address(watching: subprocess.Popen[str]) -> str:
    """Where the page is, as its first line says."""
    assert watching.stdout is not None
    line = watching.stdout.readline()
    found = re.search(r"at (http://127\.0\.0\.1:\d+/) \(Ctrl-C stops\)", line)
    assert found, f"{line} {watching.stderr.read() if watching.stderr else ''}"
    return found[1]


def steps_on(url: str) -> set[int]:
    """The steps that the page has."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return {int(step) for step in re.findall(r"<summary>step (\d+)</summary>", answer.read().decode())}


def landed(run: Path) -> dict[int, float]:
    """When each step's rows came."""
    files = (run / "rows").glob("step-*.parquet")
    return {int(file.name.split("-")[1]): file.stat().st_mtime for file in files}


@pytest.mark.nightly
def test_steps_of_a_real_training_are_told_soon_after_they_land_and_drawn(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with typed("watch", run) as watching:
        url = address(watching)
        assert watching.stdout is not None
        assert watching.stdout.readline() == f"waiting for {run}: the folder is not there\n"
        first = version(url)
        assert first["said"] == f"waiting for {run}: the folder is not there"
        asked = ("--steps", 100_000, "--checkpoints", 250)  # a look a second or so
        with typed("train", *TINY, *asked, "--out", run) as training:
            seen = Seen(first["version"])
            end = time.time() + 90
            while len(seen.told) < 12 or len(seen.drawn) < 6:
                assert time.time() < end, (
                    f"only {sorted(seen.told)} were told of and {sorted(seen.drawn)} drawn"
                )
                assert training.poll() is None, training.stderr and training.stderr.read()
                seen.ask(url)
                time.sleep(0.25)
            training.kill()
        landing = landed(run)
        late = sorted(seen.told[step] - landing[step] for step in seen.told)
        assert late[len(late) // 2] < SOON and late[int(0.9 * len(late))] < SOON, late
        drawn = sorted(seen.drawn[step] - landing[step] for step in seen.drawn)
        assert drawn[0] < SOON, drawn  # the best of them: a page waits for other processes of a busy machine
        assert ended(watching, signal.SIGINT)[::2] == (0, "")
    assert not (run / "report.html").exists()  # who watches writes nothing


class Seen:
    """When a step was first told of, in the line or by the page, and when it was first drawn."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.told: dict[int, float] = {}
        self.drawn: dict[int, float] = {}

    def ask(self, url: str) -> None:
        """Ask once, as a browser does."""
        now = version(url)
        if come := re.search(r"step ([\d,]+) has come: loss", now["said"]):
            self.told.setdefault(int(come[1].replace(",", "")), time.time())
        if now["version"] != self.version:
            self.version = now["version"]
            for step in steps_on(url):
                self.drawn.setdefault(step, time.time())
                self.told.setdefault(step, time.time())


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_one_line(tmp_path: Path, by: signal.Signals) -> None:
    write_step(tmp_path / "run", 3)
    with typed("watch", tmp_path / "run") as watching:
        url = address(watching)
        assert version(url)["version"]
        assert ended(watching, by) == (0, "stopped watching; the run itself is as it was.\n", "")
        with pytest.raises(OSError, match="refused"):
            version(url)


@pytest.mark.parametrize("by", [signal.SIGINT, *nightly(signal.SIGTERM)])
def test_a_signal_ends_it_amid_a_page_and_with_clients_that_say_and_read_nothing(
    tmp_path: Path, by: signal.Signals
) -> None:
    run, steps = tmp_path / "run", list(range(800))
    folder = open_run(run, a_training())
    folder.write("many", watched(steps, layers=7, heads=16), facts([0])["step 000000"])  # a page of seconds
    with typed("watch", run) as watching, ExitStack() as clients:
        where = urlsplit(address(watching))
        silent, deaf = (clients.enter_context(create_connection((where.hostname, where.port))) for _ in "ab")
        until(lambda: version(where.geturl())["said"].endswith("drawing it"))
        deaf.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        time.sleep(0.1)
        assert version(where.geturl())["said"].startswith("many has come: loss ")  # it draws
        assert ended(watching, by) == (0, "stopped watching; the run itself is as it was.\n", "")
        assert silent.recv(1) == b""


def ended(watching: subprocess.Popen[str], by: signal.Signals) -> tuple[int, str, str]:
    """How it ends, its code and what it says, within 20 s of the signal: others may compute beside it."""
    watching.send_signal(by)
    out, err = watching.communicate(timeout=20)
    return watching.returncode, out, err


def test_what_cannot_be_is_one_sentence(isoscope: Isoscope, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    told = sentence(isoscope("watch", tmp_path / "file"))
    assert told == f"{tmp_path / 'file'} is a file; give the folder of a run, such as runs/demo."
    told = sentence(isoscope("watch", tmp_path, "--host", "0.0.0.0"))
    assert told.startswith("--host 0.0.0.0 can be reached from other machines") and "--allow-remote" in told
    with typed("watch", tmp_path / "run") as watching:
        port = address(watching).split(":")[-1].strip("/")
        told = sentence(isoscope("watch", tmp_path / "run", "--port", port))
        assert told.startswith(f"cannot listen at port {port} of 127.0.0.1: it is in use; leave --port out")
        with typed("watch", tmp_path / "run") as second:
            assert address(second).split(":")[-1].strip("/") != port


def test_other_machines_are_let_in_with_a_warning(tmp_path: Path) -> None:
    with typed("watch", tmp_path / "run", "--host", "0.0.0.0", "--port", 0, "--allow-remote") as watching:
        assert watching.stdout is not None
        assert "at http://" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=20)
        assert watching.returncode == 0
        assert "can read this page: it asks for no password" in " ".join(err.split())


def block(run: Path, isoscope: Isoscope) -> None:
    small = ("--width", 16, "--heads", 2, "--length", 8, "--sequences", 4, "--passes", 2)
    assert isoscope("block", "--bias-norms", "0,20", *small, "--out", run).code == 0


def training(run: Path, isoscope: Isoscope) -> None:
    assert isoscope("train", *TINY, "--steps", 2, "--out", run).code == 0


def contrast(run: Path, _: Isoscope) -> None:
    """Trials of two arms, hand-made."""
    folder = open_run(run, Run("contrast", "arms", {"reference": "softmax"}, {}, {}, ""))
    rows = trials(lambda arm, seed, layer, at: at + (arm == "qk-norm") * (0.5 + 0.01 * seed))
    for place, arm in enumerate(("softmax", "qk-norm")):
        folder.write(arm, rows[rows["model"] == arm], {"arm": arm, "place": place})


def reproduce(run: Path, _: Isoscope) -> None:
    """A claim that could not be tried."""
    folder = open_run(
        run, Run("reproduce", "a paper", {"paper": "godey2024", "scale": "small", "seeds": 1}, {}, {}, "")
    )
    folder.write("untrained-block", failed("untrained-block", "no room"), {"notes": ["a note"]})


def sweep(run: Path, _: Isoscope) -> None:
    a_sweep(run)


@pytest.mark.parametrize("make", [training, block, contrast, reproduce, sweep])
def test_the_page_is_the_one_that_report_writes(
    isoscope: Isoscope, tmp_path: Path, make: Callable[[Path, Isoscope], None]
) -> None:
    make(tmp_path, isoscope)
    (run,) = {file.parent for file in tmp_path.rglob("run.json")}
    assert isoscope("report", run).code == 0
    there = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    remembered = Remembered()
    for _ in range(2):  # read, and as it is remembered
        assert page_text(run, remembered) == (run / "report.html").read_text(encoding="utf-8")
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*")} == there  # nothing was written


def test_what_is_remembered_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file, remembered = write_step(tmp_path / "run", 3), Remembered()
    first = page_text(tmp_path / "run", remembered)
    beside = write_step(tmp_path / "other", 7)
    file.write_bytes(beside.read_bytes())
    assert page_text(tmp_path / "run", remembered) == page_text(tmp_path / "run", Remembered()) != first
    file.write_bytes(beside.read_bytes()[:100])
    with pytest.raises(IsoscopeError, match="cannot read"):
        page_text(tmp_path / "run", remembered)
    file.unlink()
    write_step(tmp_path / "run", 9)
    assert page_text(tmp_path / "run", remembered) == page_text(tmp_path / "run", Remembered())
