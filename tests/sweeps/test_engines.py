"""Every engine gives the same rows; a worker that dies costs its unit one more try, the others nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from isoscope.errors import IsoscopeError
from isoscope.results.store import RunFolder
from isoscope.sweeps.find.checkpoints import in_folder
from isoscope.sweeps.sweep import measured
from isoscope.sweeps.work import on_ray
from isoscope.sweeps.work.job import Asked, Job, Outcome
from isoscope.sweeps.work.local import Slot, Started, in_slots, processes
from isoscope.sweeps.work.on_ray import ray_slots
from tests.sweeps.swept import Dies, Waits, asides, ask, in_rows_order, jobs_of, opened, outcomes, some


@pytest.fixture(scope="module")
def plain(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """All checkpoints, measured in this process, undisturbed."""
    asked = ask(trained, heads=True)
    folder = opened(asked, tmp_path_factory.mktemp("plain") / "run")
    checkpoints = in_folder(trained)
    assert len(checkpoints) > 30
    assert not [each for each in outcomes(measured(jobs_of(asked, folder, checkpoints), [])) if each.failed]
    return in_rows_order(folder.frame())


def same(folder: RunFolder, plain: pd.DataFrame) -> None:
    """Nothing lost, nothing doubled, not a bit of it otherwise."""
    rows = in_rows_order(folder.frame())
    steps = set(rows.step)
    pd.testing.assert_frame_equal(
        rows, plain[plain.step.isin(steps)].reset_index(drop=True), check_exact=True
    )
    assert not asides(folder.path)


@pytest.mark.nightly
def test_two_processes_give_the_same_rows(trained: Path, tmp_path: Path, plain: pd.DataFrame) -> None:
    asked = ask(trained, heads=True)
    folder = opened(asked, tmp_path / "run")
    jobs = jobs_of(asked, folder, in_folder(trained))
    events = list(measured(jobs, processes(2, 1)))
    assert len(outcomes(events)) == len(jobs)
    assert {event.unit for event in events if isinstance(event, Started)} == {
        job.checkpoint.unit for job in jobs
    }
    assert set(folder.frame().step) == set(plain.step)
    same(folder, plain)


@pytest.mark.nightly
def test_a_process_that_dies_once_costs_nothing_and_one_that_always_dies_a_row(
    trained: Path, tmp_path: Path, plain: pd.DataFrame
) -> None:
    asked = ask(trained, heads=True, opener=Dies(str(trained), {2: 1, 4: 9}, str(tmp_path)))
    folder = opened(asked, tmp_path / "run")
    found = outcomes(measured(jobs_of(asked, folder, some(trained, 7)), processes(2, 1)))
    assert sorted(each.step or 0 for each in found) == list(range(7))
    failed = {each.step: each.failed for each in found if each.failed}
    assert failed == {
        4: "the process that measured it was killed (SIGKILL), perhaps for want of memory, 2 times"
    }
    assert sorted(file.name for file in tmp_path.glob("try-*")) == ["try-2-0", "try-4-0", "try-4-1"]
    rows = folder.frame()
    assert rows[rows.step == 4].measure.tolist() == ["failed"]
    others = in_rows_order(rows[rows.step != 4])
    pd.testing.assert_frame_equal(others, plain[plain.step.isin([0, 1, 2, 3, 5, 6])].reset_index(drop=True))


def test_stopping_leaves_no_process_and_what_is_done(trained: Path, tmp_path: Path) -> None:
    """As Ctrl-C does: the generator is closed while a unit waits."""
    asked = ask(trained, opener=Waits(str(trained), 1, str(tmp_path)))
    folder = opened(asked, tmp_path / "run")
    events = measured(jobs_of(asked, folder, some(trained, 3)), processes(1, 1))
    while not (isinstance(event := next(events), Started) and event.unit == "step-000001"):
        pass
    while not (tmp_path / "pid").exists():
        time.sleep(0.02)
    child = int((tmp_path / "pid").read_text())
    started = time.monotonic()
    events.close()
    assert time.monotonic() - started < 5
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert folder.units() == ["step-000000"]


def test_an_error_of_the_run_folder_is_raised_and_stops_the_others(trained: Path, tmp_path: Path) -> None:
    asked = ask(trained)
    folder = opened(asked, tmp_path / "run")
    jobs = jobs_of(asked, folder, some(trained, 3))
    (folder.path / "rows").rmdir()
    (folder.path / "rows").write_text("no folder")
    with pytest.raises(IsoscopeError, match="cannot write"):
        list(measured(jobs, processes(1, 1)))


def test_slots_take_the_next_unit_when_they_are_free() -> None:
    asked = Asked("none")
    jobs = [Job("", asked, checkpoint) for checkpoint in _numbered(20)]
    at_work, most, lock = 0, 0, threading.Lock()

    def measure(job: Job) -> Outcome:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.2 if job.checkpoint.step == 0 else 0.002)
        with lock:
            at_work -= 1
        return Outcome(job.checkpoint.unit, job.checkpoint.step, 0.0)

    found = outcomes(in_slots(jobs, [Slot(measure, lambda: None)] * 3))
    assert sorted(each.step or 0 for each in found) == list(range(20))
    assert most == 3
    assert found[-1].step == 0  # the slow one held nobody up


def _numbered(count: int) -> list[Any]:
    from isoscope.sweeps.find.checkpoints import Checkpoint

    return [Checkpoint(f"step{number}", number, "") for number in range(count)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A real cluster of one node with two CPUs: its address."""
    pytest.importorskip("ray", reason="needs ray")
    os.environ.update({name: value for name, value in on_ray._QUIET.items() if name not in os.environ})
    from ray.cluster_utils import Cluster

    running = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 * 2**20},
    )
    yield running.address
    running.shutdown()


@pytest.mark.nightly
def test_ray_gives_the_same_rows_also_where_a_worker_is_killed(
    trained: Path, tmp_path: Path, plain: pd.DataFrame, cluster: str
) -> None:
    """The worker of one unit is killed from outside while it measures: nothing lost, nothing doubled."""
    asked = ask(trained, heads=True, opener=Waits(str(trained), 7, str(tmp_path)))
    folder = opened(asked, tmp_path / "run")
    killed: list[int] = []

    def kill() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.02)
        killed.append(int((tmp_path / "pid").read_text()))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with ray_slots(None, 1, address=cluster) as slots:
        assert len(slots) == 2
        found = outcomes(measured(jobs_of(asked, folder, in_folder(trained)), slots))
    killer.join(5)
    assert killed
    assert killed[0] != os.getpid()
    assert sorted(each.step or 0 for each in found) == sorted(set(plain.step))
    assert not any(each.failed for each in found)
    assert set(folder.frame().step) == set(plain.step)
    same(folder, plain)


@pytest.mark.nightly
def test_ray_gives_up_on_a_task_that_always_dies(
    trained: Path, tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "RETRIES", 1)
    asked = ask(trained, opener=Dies(str(trained), {1: 9}, str(tmp_path)))
    folder = opened(asked, tmp_path / "run")
    with ray_slots(1, 1, address=cluster) as slots:
        found = outcomes(measured(jobs_of(asked, folder, some(trained, 3)), slots))
    failed = {each.step: each.failed for each in found if each.failed}
    assert set(failed) == {1}
    assert failed[1].startswith("its task on Ray died, 2 times: ")
    assert len(list(tmp_path.glob("try-*"))) == 2


@pytest.mark.nightly
def test_what_does_not_fit_a_cluster_is_said(cluster: str) -> None:
    with (
        pytest.raises(IsoscopeError, match="no node of the cluster has room for a unit of 1 CPUs and 1 GPUs"),
        ray_slots(1, 1, address=cluster, gpus=1.0),
    ):
        pass
