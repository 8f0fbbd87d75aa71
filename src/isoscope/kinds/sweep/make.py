"""A sweep as a call: checkpoints are found and verified, measured unit by unit, and read together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from os import PathLike, cpu_count
from os.path import normpath
from pathlib import Path

from isoscope.data.documents import refuse_missing
from isoscope.errors import IsoscopeError, refuse_sizes, unknown_name
from isoscope.lab.train.reopen import Reopen, training_of
from isoscope.models import zoo
from isoscope.models.source import DTYPES, place_for
from isoscope.results.place import default_out
from isoscope.results.store import RunFolder, read_run
from isoscope.run.observe.memory import DEFAULT
from isoscope.run.telling import SILENT, Telling
from isoscope.sweeps.fetch.shelf import Shelf
from isoscope.sweeps.find.checkpoints import Checkpoint, in_folder
from isoscope.sweeps.find.remote import of_zoo
from isoscope.sweeps.find.remote import revisions as revisions_of
from isoscope.sweeps.sweep import measured, open_sweep, read_together, run_of, waiting
from isoscope.sweeps.verify.integrity import Finding, examine
from isoscope.sweeps.verify.verify import as_measured, mark_anew, prints_of
from isoscope.sweeps.work.job import WHAT, Asked, Outcome
from isoscope.sweeps.work.local import Event, processes
from isoscope.sweeps.work.on_ray import ray_slots

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Watching:
    """Who hears of a sweep: of its progress, of checkpoints once examined, and of every unit."""

    telling: Telling = SILENT
    examined: Callable[[Sequence[Checkpoint], Sequence[Finding], bool], None] = lambda *told: None
    units: Callable[[str, int, int], AbstractContextManager[Callable[[Event], None]]] = (
        lambda title, total, there: nullcontext(lambda event: None)
    )


UNSEEN = Watching()


def sweep(
    model: str | PathLike[str],
    *,
    revisions: str | None = None, what: str = "measure", data: str | None = None, limit: int | None = 64,
    max_length: int | None = None, batch_size: int = 16, tokens: str = "auto",
    measures: Sequence[str] | None = None, layers: str = "*", heads: bool = False,
    counterfactual: bool = True,
    length: int = 512, config: str | None = None, device: str | None = None, dtype: str = "float32",
    engine: str = "local", workers: int | None = None, threads: int = 1,
    ray_address: str | None = None, gpus_per_task: float = 0.0, disk_budget: float = 50e9,
    shard: tuple[int, int] = (0, 1), strict: bool = False, trust_remote_code: bool = False,
    seed: int = 0, memory: float = DEFAULT, out: str | PathLike[str] | None = None,
    watching: Watching = UNSEEN,
) -> RunFolder:  # fmt: skip
    """Measure the checkpoints of a training, once it is known whether they are what they claim to be.

    `model` is a folder of checkpoints, a run of `isoscope train`, or a hub id with `revisions`, a pattern
    such as "step{0,1000..143000:7000}"; an empty pattern is every branch and tag. `shard` (i, n) measures
    every nth checkpoint from the ith on. Without `out` the folder is `runs/NAME-ID`. What is there is not
    measured again.
    """
    refuse_sizes(limit, max_length, batch_size)
    address, telling = str(model), watching.telling
    with telling.bar(f"looking for checkpoints of {address}"):
        words = (("what", what, WHAT), ("engine", engine, ENGINES), ("dtype", dtype, DTYPES))
        for kind, name, names in words:
            if name not in names:
                raise unknown_name(kind, name, names)
        if engine == "local":
            place_for(device)
        if data is not None and what != "weights":
            refuse_missing(data)
        checkpoints = _checkpoints(address, revisions, config)
        training = training_of(address)  # of the lab: a run that opens its own checkpoints
        asked = Asked(
            name=normpath(address) if Path(address).is_dir() else address, what=what, data=data or "embedded",
            limit=limit, max_length=max_length, batch_size=batch_size, tokens=tokens, layers=layers,
            measures=None if measures is None else tuple(measures), counterfactual=counterfactual,
            heads=heads, length=length, seed=seed, memory=memory, device=device, dtype=dtype, threads=threads,
            trust_remote_code=trust_remote_code,
            opener=None if training is None else Reopen(str(training), data),
        )  # fmt: skip
        origin = {} if training is None else {"training": read_run(training).run.id}
        run = run_of(asked, origin)
    folder = open_sweep(run, Path(out or default_out(asked.name, run.id)))
    at_once = max(1, workers or 1)
    with telling.bar("fingerprints") as progress:
        prints = prints_of(folder, checkpoints, workers=at_once, progress=progress)
    known = as_measured(folder, checkpoints, prints)
    findings = examine(checkpoints, known)
    watching.examined(checkpoints, findings, not all(each.sketch for each in known.values()))
    if strict and findings:
        wrong = f"{len({each.checkpoint for each in findings})} of {len(checkpoints)} checkpoints"
        said = f"{wrong} are not what they should be; nothing was measured. Mend them, or leave --strict out."
        raise IsoscopeError(said)
    cores = cpu_count() or 1
    if engine == "local" and at_once * threads > cores:  # that makes all of them slower
        wanted = f"{at_once} workers of {threads} thread{'s' * (threads > 1)}"
        telling.note(f"{wanted} share {cores} cores; fewer would be done sooner")
    mine = checkpoints[shard[0] :: shard[1]]
    jobs = waiting(folder, asked, mine, prints, findings)
    there, outcomes = len(mine) - len(jobs), list[Outcome]()
    with ExitStack() as open_:
        shelf, plan = None, [job.checkpoint for job in jobs]
        if any(each.revision for each in plan):
            shelf = open_.enter_context(Shelf(folder.path / "shelf", int(disk_budget), plan, ahead=at_once))
        if engine == "ray" and jobs:
            most = None if workers is None else at_once
            slots = open_.enter_context(ray_slots(most, threads, address=ray_address, gpus=gpus_per_task))
            slots = slots[: len(jobs)]
        else:
            slots = processes(min(len(jobs), 1 if workers is None else workers), threads)
        tell = open_.enter_context(watching.units(f"sweep of {address}", len(mine), there))
        for event in measured(jobs, slots, shelf):
            tell(event)
            outcomes += [event] if isinstance(event, Outcome) else []
    if mine and not there and all(each.failed for each in outcomes):
        raise IsoscopeError(
            f"none of {len(mine)} checkpoints could be measured; mend what is said above, and run it again."
        )
    known = as_measured(folder, checkpoints, prints)
    now = examine(checkpoints, known)
    if now != findings:  # what was downloaded since tells more than the hub's hashes
        watching.examined(checkpoints, now, not all(each.sketch for each in known.values()))
    mark_anew(folder, checkpoints, now)
    with telling.bar("reading all of it together"):
        read_together(folder)
    return folder


def _checkpoints(model: str, pattern: str | None, config: str | None) -> list[Checkpoint]:
    if Path(model).is_dir():
        if pattern is not None:
            raise IsoscopeError(f"'{model}' is a folder, and only hub ids have revisions; leave them out.")
        found = in_folder(model, config=config)
        return [replace(each, address=str(Path(each.address).absolute())) for each in found]
    if model in zoo.NAMES and (pattern is not None or zoo.find(model).revisions):
        return of_zoo(model, pattern)
    if pattern is None:
        raise IsoscopeError(
            f"there is no folder '{model}' here; of a hub id say which revisions: "
            "--revisions 'step{0,1000..143000:7000}', --pythia-schedule or --all-revisions."
        )
    return revisions_of(model, pattern or None)
