"""A sweep that is killed and started again: nothing lost, nothing doubled, nothing half-written left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from isoscope.results import store
from isoscope.results.store import read_run
from isoscope.sweeps.find.checkpoints import in_folder
from isoscope.sweeps.verify import verify
from isoscope.sweeps.work import samples
from isoscope.sweeps.work.local import processes
from tests.sweeps.swept import asides, in_rows_order, some, swept
from tests.tiers import nightly

FEW = 3


class Killed(BaseException):
    """As a signal: nothing that catches errors catches it."""


def patched(monkeypatch: pytest.MonkeyPatch, write: object) -> None:
    for module in (store, samples):
        monkeypatch.setattr(module, "write_whole", write)


@pytest.mark.parametrize("moment", nightly("before", "half", "after"))
def test_killed_at_every_write(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real, checkpoints = store.write_whole, some(trained, FEW)
    written: list[Path] = []

    def counting(file: Path, content: bytes) -> None:
        written.append(file)
        real(file, content)

    patched(monkeypatch, counting)
    whole = swept(trained, tmp_path / "whole", checkpoints)
    rows, points = in_rows_order(whole.frame()), whole.points()
    kinds = [file.parent.name for file in written]
    assert kinds.count("fingerprints") == kinds.count("samples") == FEW
    assert kinds.count("rows") == FEW + 1  # and what all say together
    for k in range(1, len(written) + 1):
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

        patched(monkeypatch, write)
        out = tmp_path / f"run-{k}"
        with pytest.raises(Killed):
            swept(trained, out, checkpoints)
        patched(monkeypatch, real)
        there = set(read_run(out).units()) if (out / "run.json").exists() else set()
        folder = swept(trained, out, checkpoints)
        assert there <= set(folder.units())
        pd.testing.assert_frame_equal(in_rows_order(folder.frame()), rows, check_exact=True)
        pd.testing.assert_frame_equal(folder.points(), points)
        assert not asides(out), f"left by the blow at write {k}, {written[k - 1]}"


def test_what_is_there_is_not_measured_again(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = swept(trained, tmp_path / "run", some(trained, 2))
    times = {file: file.stat().st_mtime_ns for file in (folder.path / "rows").glob("step-*")}
    read: list[str] = []
    real = verify.fingerprint
    monkeypatch.setattr(verify, "fingerprint", lambda one: (read.append(one.name), real(one))[1])
    swept(trained, tmp_path / "run", some(trained, 3))
    assert read == ["step-000002"]
    assert {file: file.stat().st_mtime_ns for file in times} == times
    assert set(folder.units()) == {"between", "step-000000", "step-000001", "step-000002"}


def test_a_checkpoint_that_changed_is_measured_again(trained: Path, tmp_path: Path) -> None:
    there = tmp_path / "checkpoints"
    there.mkdir()
    for each in some(trained, 3):
        (there / Path(each.address).name).write_bytes(Path(each.address).read_bytes())
    before = swept(trained, tmp_path / "run", in_folder(there)).frame()
    last = Path(in_folder(trained)[-1].address)
    (there / "step-000001.safetensors").write_bytes(last.read_bytes())
    after = swept(trained, tmp_path / "run", in_folder(there)).frame()
    for step, same in ((0, True), (1, False), (2, True)):
        own = [
            table[(table.step == step) & (table.measure == "mean_norm")].value for table in (before, after)
        ]
        assert own[0].equals(own[1]) is same or own[0].tolist() == own[1].tolist()
        assert (own[0].tolist() == own[1].tolist()) is same


def test_what_failed_is_tried_again(trained: Path, tmp_path: Path) -> None:
    there = tmp_path / "checkpoints"
    there.mkdir()
    good = {Path(each.address).name: Path(each.address).read_bytes() for each in some(trained, 3)}
    for name, body in good.items():
        (there / name).write_bytes(body[:300] if "000001" in name else body)
    folder = swept(trained, tmp_path / "run", in_folder(there))
    assert folder.frame("step-000001").measure.tolist() == ["failed"]
    (there / "step-000001.safetensors").write_bytes(good["step-000001.safetensors"])
    swept(trained, tmp_path / "run", in_folder(there))
    whole = swept(trained, tmp_path / "whole", some(trained, 3))
    pd.testing.assert_frame_equal(in_rows_order(folder.frame()), in_rows_order(whole.frame()))


CHILD = (
    "import sys; from pathlib import Path; from tests.sweeps.test_killed import child; "
    "child(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))"
)
MANY = 16


def child(trained: Path, out: Path, workers: int) -> None:
    swept(trained, out, some(trained, MANY), processes(workers, 1))


@pytest.mark.nightly
def test_killed_for_good_three_times(trained: Path, tmp_path: Path) -> None:
    """Real processes, with and without workers, ended by SIGKILL as they measure; then one to the end."""
    out = tmp_path / "run"
    done = 0
    for more, workers in ((3, 0), (4, 2), (1, 0)):
        words = [sys.executable, "-c", CHILD, str(trained), str(out), str(workers)]
        running = subprocess.Popen(words)
        while (now := len(list((out / "rows").glob("step-*.parquet")))) < done + more:
            assert running.poll() is None, "it ended by itself"
            time.sleep(0.002)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
        done = now
    assert done < MANY
    folder = swept(trained, out, some(trained, MANY))
    whole = swept(trained, tmp_path / "whole", some(trained, MANY))
    pd.testing.assert_frame_equal(
        in_rows_order(folder.frame()), in_rows_order(whole.frame()), check_exact=True
    )
    assert not asides(out)
