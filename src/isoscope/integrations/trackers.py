"""Sinks for trackers: each function here gives a plain callable sink(step, summaries) for a Monitor.

    Monitor(model, probe, sinks=[tensorboard("logs"), wandb()])

A tracker's library is imported when its sink is made, so a missing one is told before training. Decided here:
a sink closes what it opened and nothing else; a run that the user began is the user's to finish. Without one,
the run that is active at the first look is used, since the Trainer and Lightning begin theirs with training.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from isoscope.errors import IsoscopeError
from isoscope.run.monitor.monitor import Sink

STEP = "isoscope/step"  # the axis of our series in W&B, whose own step counts calls of log
_NONE_ACTIVE = "no run of {} is active: call {} before training, or give its run."


def tensorboard(where: str | Path | Any) -> Sink:
    """Scalars for TensorBoard: `where` is a folder, or a writer with `add_scalar` that is already open."""
    if hasattr(where, "add_scalar"):
        return _Scalars(where, mine=False)
    _library("tensorboard")
    return _Scalars(import_module("torch.utils.tensorboard").SummaryWriter(str(where)), mine=True)


def wandb(run: Any = None) -> Sink:
    """Log to a W&B run, what `wandb.init` returned; without it, to the one that is active.

    The series have an axis of their own, `isoscope/step`. A row is logged at the training step where W&B
    allows it, so that it joins what is logged there; where W&B's step is past it, as the next row.
    """
    library = _library("wandb")
    active: Any = None

    def sink(step: int, summaries: Mapping[str, float]) -> None:
        nonlocal active
        if active is None:
            active = _active(library.run if run is None else run, "W&B", "wandb.init(...)")
            active.define_metric(STEP, hidden=True)
            active.define_metric("isoscope/*", step_metric=STEP)
        active.log({**summaries, STEP: step}, step=step if step >= active.step else None)

    return sink


def mlflow(run: Any = None, *, tracking_uri: str | None = None) -> Sink:
    """Log metrics to an MLflow run, an id or what `mlflow.start_run` returned; without it, the active one."""
    library = _library("mlflow")
    client: Any = None

    def sink(step: int, summaries: Mapping[str, float]) -> None:
        nonlocal run, client
        if client is None:
            run = run or _active(library.active_run(), "MLflow", "mlflow.start_run()")
            client = library.MlflowClient(tracking_uri)
        now = int(1000 * time.time())
        metrics = [library.entities.Metric(name, value, now, step) for name, value in summaries.items()]
        client.log_batch(run if isinstance(run, str) else run.info.run_id, metrics)

    return sink


def trackio(run: Any = None) -> Sink:
    """Log to a trackio run, what `trackio.init` returned; without it, to the one that is active."""
    library = _library("trackio")

    def sink(step: int, summaries: Mapping[str, float]) -> None:
        try:
            (library if run is None else run).log(dict(summaries), step=step)
        except RuntimeError as reason:  # what trackio says where none is active
            raise IsoscopeError(_NONE_ACTIVE.format("trackio", "trackio.init(...)")) from reason

    return sink


class _Scalars:
    """A writer of scalars; flushed at every look, so that a killed run has all of them."""

    def __init__(self, writer: Any, *, mine: bool) -> None:
        self._writer, self._mine = writer, mine

    def __call__(self, step: int, summaries: Mapping[str, float], /) -> None:
        for name, value in summaries.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        if self._mine:
            self._writer.close()


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as reason:
        package = "mlflow-skinny" if name == "mlflow" else name
        raise IsoscopeError(
            f"the sink for {name} needs {package}: install it with `pip install {package}`, or all trackers "
            "with `pip install 'isoscope[trackers]'`."
        ) from reason


def _active(run: Any, tracker: str, begin: str) -> Any:
    if run is None:
        raise IsoscopeError(_NONE_ACTIVE.format(tracker, begin))
    return run
