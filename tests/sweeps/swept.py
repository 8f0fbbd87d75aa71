"""What the tests of a sweep share: what is asked, the jobs, and openers that misbehave."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from isoscope.lab.train.reopen import Reopen
from isoscope.results.store import RunFolder
from isoscope.sweeps.find.checkpoints import Checkpoint, in_folder
from isoscope.sweeps.sweep import measured, open_sweep, read_together, run_of, waiting
from isoscope.sweeps.verify.verify import prints_of
from isoscope.sweeps.work.job import Asked, Job, Opened, Outcome
from isoscope.sweeps.work.local import Event, Slot

MEASURES = ("mean_cosine", "mean_norm", "normalised_entropy", "cka_previous")


def ask(trained: Path, **options: object) -> Asked:
    given = {"what": "measure", "measures": MEASURES, "opener": Reopen(str(trained)), **options}
    return Asked(name="small", **given)  # type: ignore[arg-type]


def opened(asked: Asked, out: Path) -> RunFolder:
    return open_sweep(run_of(asked, {}), out)


def jobs_of(asked: Asked, folder: RunFolder, checkpoints: Iterable[Checkpoint]) -> list[Job]:
    return [Job(str(folder.path), asked, checkpoint) for checkpoint in checkpoints]


def some(trained: Path, count: int) -> list[Checkpoint]:
    """So many checkpoints, the first ones."""
    return in_folder(trained)[:count]


def swept(
    trained: Path, out: Path, checkpoints: Sequence[Checkpoint], slots: Sequence[Slot] = (), **options: object
) -> RunFolder:
    """A sweep from its beginning to its end, as the command makes it; gives its folder."""
    asked = ask(trained, **options)
    folder = opened(asked, out)
    prints = prints_of(folder, checkpoints, workers=1, progress=lambda done, total: None)
    for _ in measured(waiting(folder, asked, checkpoints, prints, []), slots):
        pass
    read_together(folder)
    return folder


def outcomes(events: Iterable[Event]) -> list[Outcome]:
    return [event for event in events if isinstance(event, Outcome)]


def in_rows_order(table: pd.DataFrame) -> pd.DataFrame:
    names = ["step", "kind", "layer", "head", "measure", "revision"]
    return table.sort_values(names, ignore_index=True)


def asides(folder: Path) -> list[Path]:
    return [file for file in folder.rglob(".*") if file.is_file()]


@dataclass(frozen=True)
class Dies:
    """An opener whose process kills itself at some steps, so many times each."""

    training: str
    times: dict[int, int]
    notes: str

    def __call__(self, checkpoint: Checkpoint, device: str | None) -> Opened:
        step = checkpoint.step or 0
        tries = len(list(Path(self.notes).glob(f"try-{step}-*")))
        if tries < self.times.get(step, 0):
            (Path(self.notes) / f"try-{step}-{tries}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Reopen(self.training)(checkpoint, device)


@dataclass(frozen=True)
class Waits:
    """An opener that says by which process a checkpoint is being opened, and waits to be killed, once."""

    training: str
    step: int
    notes: str

    def __call__(self, checkpoint: Checkpoint, device: str | None) -> Opened:
        note = Path(self.notes) / "pid"
        if checkpoint.step == self.step and not note.exists():
            aside = note.with_suffix(".aside")
            aside.write_text(str(os.getpid()))
            aside.replace(note)
            time.sleep(60)
        return Reopen(self.training)(checkpoint, device)
