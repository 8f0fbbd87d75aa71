"""A sweep: the checkpoints of a training are verified, then measured unit by unit, then read together.

The run folder is its state: a unit is measured where it is not there, where it failed, or where the
checkpoint is another now. Checkpoints are no part of the question: a sweep grows with its training.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from isoscope.errors import IsoscopeError
from isoscope.measures.table import choose
from isoscope.results.run import Run
from isoscope.results.store import RunFolder, open_run
from isoscope.results.trajectory import trajectory
from isoscope.run.monitor.kept import clear_unbegun
from isoscope.run.provenance import new_run
from isoscope.run.weigh.weighed import weight_measures
from isoscope.sweeps.fetch.shelf import Shelf
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.together.between import BETWEEN, EXPLANATIONS, summarise
from isoscope.sweeps.verify.fingerprint import Fingerprint
from isoscope.sweeps.verify.integrity import Finding
from isoscope.sweeps.verify.verify import by_checkpoint
from isoscope.sweeps.work.aside import clear_aside
from isoscope.sweeps.work.job import Asked, Job, Outcome
from isoscope.sweeps.work.local import Event, Slot, Stopped, here, in_slots
from isoscope.sweeps.work.unit import DIGEST, FAILED, fail, measure_one

_OF_NO_ROW = ("name", "opener", "device")  # what is asked and does not fix what rows say


def run_of(asked: Asked, origin: Mapping[str, object]) -> Run:
    """What is asked of every checkpoint alike; `origin` is what else fixes the rows, such as a training."""
    settled = asdict(replace(asked, opener=None, measures=None))
    question = {name: value for name, value in settled.items() if name not in _OF_NO_ROW}
    question |= {"model": asked.name, **origin}
    if asked.opener is None and Path(asked.data).is_file():
        question["data_hash"] = hashlib.sha256(Path(asked.data).read_bytes()).hexdigest()[:16]
    measured = choose(asked.measures) if asked.what != "weights" else ()
    weighed = weight_measures() if asked.what != "measure" else ()
    question["measures"] = [measure.name for measure in measured]
    run = new_run("sweep", asked.name, question, (*measured, *weighed))
    return replace(run, measures={**run.measures, **EXPLANATIONS})


def open_sweep(run: Run, out: Path) -> RunFolder:
    """Its run folder, also where an earlier sweep was killed while it was made."""
    clear_unbegun(out)
    return open_run(out.absolute(), run)


def waiting(
    folder: RunFolder,
    asked: Asked,
    checkpoints: Iterable[Checkpoint],
    prints: Mapping[str, Fingerprint],
    findings: Iterable[Finding],
) -> list[Job]:
    """A job for each checkpoint that the folder has not, that failed, or whose weights are others now."""
    there, said = trajectory(folder).facts, by_checkpoint(findings)
    jobs = []
    for checkpoint in checkpoints:
        known, now = there.get(checkpoint.unit), prints.get(checkpoint.name)
        if known is None or FAILED in known or (now is not None and known.get(DIGEST) != now.identity):
            found = tuple(said.get(checkpoint.name, ()))
            jobs.append(Job(str(folder.path), asked, checkpoint, fingerprint=now, findings=found))
    return jobs


def read_together(folder: RunFolder) -> None:
    """Make anew what all checkpoints say together."""
    summarise(folder)
    clear_aside(folder, BETWEEN)


def measured(jobs: Sequence[Job], slots: Sequence[Slot], shelf: Shelf | None = None) -> Iterator[Event]:
    """What becomes of the units, as it becomes known: in these slots, or in this process without any.

    Checkpoints that lie elsewhere are brought by the shelf, and taken away when they are measured.
    """
    if slots:
        yield from in_slots(jobs, slots if shelf is None else [_supplied(slot, shelf) for slot in slots])
        return
    alone = Slot(measure_one, lambda: None)
    yield from here(jobs, (alone if shelf is None else _supplied(alone, shelf)).measure)


def _supplied(slot: Slot, shelf: Shelf) -> Slot:
    """A slot whose checkpoints are brought by a shelf."""
    over = threading.Event()

    def measure(job: Job) -> Outcome:
        if not job.checkpoint.revision:
            return slot.measure(job)
        try:
            place = shelf.fetch(job.checkpoint)
        except IsoscopeError as reason:
            if over.is_set():
                raise Stopped from reason
            return fail(job, str(reason).rstrip("."))
        outcome = slot.measure(replace(job, place=str(place)))
        shelf.done(job.checkpoint)  # not where it was stopped: the next sweep begins with it
        return outcome

    def stop() -> None:
        over.set()
        slot.stop()

    return Slot(measure, stop)
