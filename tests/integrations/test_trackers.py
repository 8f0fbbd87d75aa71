"""What each tracker shows, read back with its own reader, is what the Monitor said."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from isoscope.errors import IsoscopeError
from isoscope.integrations import trackers
from isoscope.run.monitor.monitor import Sink
from tests.integrations.told import Said, assert_shown, watched


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def from_tensorboard(folder: Path) -> Said:
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard"
    )
    events = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    shown: Said = {}
    for name in events.Tags()["scalars"]:
        for event in events.Scalars(name):
            shown.setdefault(event.step, {})[name] = event.value
    return shown


@pytest.mark.parametrize("given", ["a folder", "a writer"])
def test_tensorboard(given: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path)) if given == "a writer" else None
    said = watched(trackers.tensorboard(writer or tmp_path))
    if writer is not None:
        writer.add_scalar("mine", 1.0, 0)  # what was given is left open
        writer.close()
        said[0]["mine"] = 1.0
    assert_shown(from_tensorboard(tmp_path), said, rel=1e-6)  # it keeps float32


def test_tensorboard_can_be_read_before_it_is_closed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard")
    sink: Any = trackers.tensorboard(str(tmp_path))
    sink(3, {"isoscope/a/max": math.nan})
    assert math.isnan(from_tensorboard(tmp_path)[3]["isoscope/a/max"])
    sink.close()


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The library, offline, with all its files here."""
    for folder in ("DIR", "CACHE_DIR", "CONFIG_DIR", "DATA_DIR", "ARTIFACT_DIR"):
        monkeypatch.setenv(f"WANDB_{folder}", str(tmp_path))
    for name, value in {"MODE": "offline", "SILENT": "true", "ERROR_REPORTING": "false"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    wandb = pytest.importorskip("wandb", reason="needs wandb")

    yield wandb
    wandb.teardown()


def begun(wandb: Any, folder: Path) -> Any:
    quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off", disable_git=True)
    return wandb.init(project="isoscope", dir=str(folder), mode="offline", settings=quiet)


def from_wandb(wandb: Any, folder: Path) -> list[dict[str, float]]:
    """The rows of the one run that is there, once the process that writes them has ended."""
    wandb.teardown()
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    (file,) = folder.rglob("run-*.wandb")
    store, rows = DataStore(), []
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append(
                {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
            )
    store.close()
    return rows


def ours(rows: list[dict[str, float]]) -> Said:
    mine = [{name: row[name] for name in row if name.startswith("isoscope/")} for row in rows]
    return {int(row.pop(trackers.STEP)): row for row in mine if row}


@pytest.mark.parametrize(
    "given",
    [pytest.param(True, id="its run", marks=pytest.mark.nightly), pytest.param(False, id="the active run")],
)
def test_wandb(given: bool, wandb: Any, tmp_path: Path) -> None:
    run = begun(wandb, tmp_path)
    said = watched(trackers.wandb(run) if given else trackers.wandb())
    run.log({"mine": 1.0})  # what was given is left open
    run.finish()
    rows = from_wandb(wandb, tmp_path)
    assert_shown(ours(rows), said)
    assert sum("mine" in row for row in rows) == 1


def test_wandb_loses_nothing_whoever_counts_the_steps(wandb: Any, tmp_path: Path) -> None:
    run = begun(wandb, tmp_path)
    sink = trackers.wandb(run)
    run.log({"loss": 1.0}, step=2)
    sink(2, {"isoscope/a/mean": 0.5})  # joins the row of step 2
    run.log({"accuracy": 0.1}, step=2)
    for _ in range(5):
        run.log({"mine": 0.0})  # W&B's own count is past 4 now
    sink(4, {"isoscope/a/mean": 1.5})
    sink(6, {"isoscope/a/mean": math.nan})
    run.finish()
    rows = from_wandb(wandb, tmp_path)
    assert {"loss", "accuracy", "isoscope/a/mean"} <= rows[0].keys()
    assert sum("mine" in row for row in rows) == 5
    expected = {2: {"isoscope/a/mean": 0.5}, 4: {"isoscope/a/mean": 1.5}, 6: {"isoscope/a/mean": math.nan}}
    assert_shown(ours(rows), expected)


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The library with a store of files here; mlflow-skinny has no other that needs no server."""
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow-skinny")

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    yield mlflow
    mlflow.set_tracking_uri(before)


@pytest.mark.parametrize("given", ["its run", "its id", "the active run"])
def test_mlflow(given: str, mlflow: Any) -> None:
    with mlflow.start_run() as run:
        options = {"its run": (run,), "its id": (run.info.run_id,), "the active run": ()}
        said = watched(trackers.mlflow(*options[given]))
        assert mlflow.active_run() is not None  # it is the user's to end
    client = mlflow.MlflowClient()
    shown: Said = {}
    for name in client.get_run(run.info.run_id).data.metrics:
        for metric in client.get_metric_history(run.info.run_id, name):
            shown.setdefault(metric.step, {})[name] = metric.value
    assert_shown(shown, said)


def test_mlflow_in_a_store_of_ones_own(mlflow: Any, tmp_path: Path) -> None:
    where = (tmp_path / "elsewhere").as_uri()
    client = mlflow.MlflowClient(where)
    run = client.create_run(client.create_experiment("isoscope"))
    trackers.mlflow(run, tracking_uri=where)(3, {"isoscope/a/max": math.nan})
    (metric,) = client.get_metric_history(run.info.run_id, "isoscope/a/max")
    assert (metric.step, math.isnan(metric.value)) == (3, True)


@pytest.mark.usefixtures("wandb", "mlflow")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (trackers.wandb, r"no run of W&B is active: call wandb.init\(...\) before training"),
        (trackers.mlflow, r"no run of MLflow is active: call mlflow.start_run\(\) before training"),
    ],
)
def test_where_no_run_is_active_it_says_what_to_call(make: Callable[[], Sink], said: str) -> None:
    with pytest.raises(IsoscopeError, match=said):
        make()(0, {"isoscope/a/mean": 1.0})


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (lambda: trackers.tensorboard("logs"), "tensorboard"),
        (trackers.wandb, "wandb"),
        (trackers.mlflow, "mlflow-skinny"),
        (trackers.trackio, "trackio"),
    ],
)
def test_a_missing_library_is_told_when_the_sink_is_made(
    make: Callable[[], Sink], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package.removesuffix("-skinny"), None)
    with pytest.raises(
        IsoscopeError, match=rf"needs {package}: .*`pip install {package}`.*isoscope\[trackers\]"
    ):
        make()


def test_no_library_is_imported_before_its_sink_is_made() -> None:
    code = "import isoscope.integrations.trackers, sys; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not set(told.stdout.split()) & {"tensorboard", "wandb", "mlflow", "trackio"}
