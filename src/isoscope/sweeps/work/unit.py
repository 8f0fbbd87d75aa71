"""One unit of a sweep: one checkpoint is opened, measured, and its rows are kept.

`measure_one` is a plain function of a plain record, so that a process, a Ray task and a loop do the same. A
checkpoint that cannot be measured is a row too, with its reason; without memory enough, smaller batches are
tried; only a run folder that cannot be written to is an error of the sweep.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.data.batch import Batch
from isoscope.errors import IsoscopeError
from isoscope.models.inputs import open_data
from isoscope.models.source import Model, load
from isoscope.models.survey import remembering
from isoscope.results.reading import Reading
from isoscope.results.row import Row
from isoscope.results.store import RunFolder, read_run
from isoscope.run.monitor.own import explained, own_rows
from isoscope.run.observe.observation import Observation
from isoscope.run.observe.observe import observe
from isoscope.run.weigh.weigh import weigh
from isoscope.sweeps.verify.fingerprint import fingerprint
from isoscope.sweeps.work.aside import clear_aside
from isoscope.sweeps.work.job import Asked, Job, Opened, Outcome
from isoscope.sweeps.work.samples import keep_sample
from isoscope.sweeps.work.threads import so_many_threads

FAILED = "failed"
"""The measure, of no value, that tells why a checkpoint has no other rows."""
DIGEST = "listed digest"
"""The fact by which it is known whether a checkpoint is still what was measured."""
OF_CHECKPOINT = "checkpoint"  # the kind of its row
_NO_ROOM = ("can't allocate memory", "not enough memory", "out of memory")  # as torch says it


def measure_one(job: Job) -> Outcome:
    """Measure one checkpoint and keep its rows, or the reason why there are none."""
    folder, unit, started = read_run(job.folder), job.checkpoint.unit, time.perf_counter()
    with so_many_threads(job.asked.threads):
        try:
            rows, facts, seen = _measured(job, folder)
        except Exception as reason:  # noqa: BLE001  whatever a damaged checkpoint makes of any library
            return fail(job, _sentence(reason), time.perf_counter() - started)
        seconds = time.perf_counter() - started
        if seen is not None:
            keep_sample(folder, unit, seen)
        folder.write(unit, rows, {**facts, **_known(job, seconds)})
    clear_aside(folder, unit)
    return Outcome(unit, job.checkpoint.step, seconds, len(rows))


def fail(job: Job, reason: str, seconds: float = 0.0) -> Outcome:
    """Keep a row that says why this checkpoint could not be measured."""
    folder, checkpoint = read_run(job.folder), job.checkpoint
    at = (folder.run.id, job.asked.name, checkpoint.name, checkpoint.step, OF_CHECKPOINT, None, None, FAILED)
    row = Row.at(*at, Reading(math.nan, 0, note=reason))
    facts = {**_known(job, seconds), FAILED: reason, "notes": [f"{checkpoint.name}: {reason}"]}
    folder.write(checkpoint.unit, [row], facts)
    clear_aside(folder, checkpoint.unit)
    return Outcome(checkpoint.unit, checkpoint.step, seconds, failed=reason)


def _measured(job: Job, folder: RunFolder) -> tuple[list[Row], dict[str, object], Observation | None]:
    """The rows, what is known, and the observation where there was one."""
    asked, run = job.asked, folder.run.id
    opened = None if asked.opener is None else asked.opener(job.checkpoint, asked.device)
    rows: list[Row] = []
    facts: dict[str, object] = {}
    notes: list[str] = []
    seen = None
    if asked.what != "weights":
        model, batches = _source(job, opened)
        seen, smaller = _observed(asked, model, batches)
        rows += seen.rows(run)
        facts |= seen.known()
        notes += [*seen.notes(), *smaller]
        if opened is not None:
            rows += own_rows(opened.told, seen, run)
            facts["explained"] = explained(opened.told)
    if asked.what != "measure":
        place, at = (opened.model, {}) if opened is not None else _where(job)
        weighed = weigh(place, **at, **asked.options("length", "seed"))
        name, step = job.checkpoint.name, job.checkpoint.step
        rows += [replace(row, model=asked.name, revision=name, step=step) for row in weighed.rows(run)]
        facts = {**weighed.facts, **facts}
        notes += weighed.notes()
    return rows, {**facts, "notes": notes}, seen


def _source(job: Job, opened: Opened | None) -> tuple[Model, Callable[[int | None], Any]]:
    """The model as rows call it, and its data in batches of a size (None: as they come)."""
    asked, checkpoint = job.asked, job.checkpoint
    called: dict[str, Any] = {"name": asked.name, "revision": checkpoint.name, "step": checkpoint.step}
    if opened is not None:
        return replace(opened.model, **called), lambda size: _split(opened.batches, size)
    place, at = _where(job)
    found = load(place, **at, **asked.options("device", "dtype", "trust_remote_code"))
    told = asked.options("limit", "max_length", "tokens", "seed")
    return replace(found, **called), lambda size: open_data(
        asked.data, found, batch_size=size or asked.batch_size, **told
    )


def _where(job: Job) -> tuple[str, dict[str, Any]]:
    """Where a checkpoint is opened, and what else opening it takes: its revision there and its config."""
    checkpoint = job.checkpoint
    revision = None if job.place else checkpoint.revision or None
    return job.place or checkpoint.address, {"revision": revision, "config": checkpoint.config}


def _observed(
    asked: Asked, model: Model, batches: Callable[[int | None], Any]
) -> tuple[Observation, list[str]]:
    """The observation; where memory does not suffice, of batches of half the size, down to one."""
    size: int | None = None
    told = asked.options("measures", "layers", "heads", "counterfactual", "seed", "memory")
    while True:
        data = batches(size)
        try:
            with remembering():
                seen = observe(model, data, **told)
        except Exception as reason:
            tried = size or max(map(len, data), default=1)
            if not out_of_memory(reason) or tried == 1:
                raise
        else:
            note = f"memory did not suffice for larger batches: it was measured with batches of {size}"
            return seen, [] if size is None else [note]
        size = max(1, tried // 2)
        gc.collect()  # what the failed pass held is let go of before the next
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def out_of_memory(reason: BaseException) -> bool:
    """Whether an error, or what it came from, says that memory does not suffice."""
    if isinstance(reason, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(reason, RuntimeError) and any(words in str(reason).lower() for words in _NO_ROOM):
        return True
    return reason.__cause__ is not None and out_of_memory(reason.__cause__)


def _split(batches: Sequence[Any], size: int | None) -> list[Any]:
    """Batches of at most this size, where they are tensors or a `Batch`."""
    if size is None:
        return list(batches)

    def parts(each: Any) -> Iterable[Any]:
        if isinstance(each, Batch):
            return map(each.take, torch.split(torch.arange(len(each)), size))
        return torch.split(each, size) if isinstance(each, Tensor) else [each]

    return [part for each in batches for part in parts(each)]


def _known(job: Job, seconds: float) -> dict[str, object]:
    """What a unit keeps of its checkpoint.

    Of one that was downloaded, the fingerprint is of its files: the hub's hashes say less.
    """
    checkpoint, listed = job.checkpoint, job.fingerprint
    found = fingerprint(replace(checkpoint, address=job.place, revision="")) if job.place else listed
    about = {name: getattr(checkpoint, name) for name in ("name", "step", "address", "revision")}
    return {
        "checkpoint": about,
        DIGEST: "" if listed is None else listed.identity,
        "fingerprint": None if found is None else found.to_json(),
        "findings": [asdict(finding) for finding in job.findings],
        "seconds": round(seconds, 3),
    }


def _sentence(reason: BaseException) -> str:
    """The first line of what went wrong; what is no error of isoscope's own is called by its kind."""
    line = (str(reason).strip().splitlines() or [""])[0].rstrip(". ")
    if out_of_memory(reason):
        return f"out of memory, even with the smallest batches: {line or type(reason).__name__}"
    own = isinstance(reason, IsoscopeError) and line
    return line if own else f"{type(reason).__name__}: {line}".rstrip(": ")
