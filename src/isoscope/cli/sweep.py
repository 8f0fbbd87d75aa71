"""`isoscope sweep`: many checkpoints of one training, verified before they are measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.options import (
    Json,
    Measures,
    Memory,
    Out,
    Seed,
    parse_bytes,
    parse_names,
    parse_share,
)
from isoscope.results.place import default_out

if TYPE_CHECKING:
    from isoscope.sweeps.find.checkpoints import Checkpoint
    from isoscope.sweeps.work.job import Opener
    from isoscope.sweeps.work.local import Slot


def sweep(
    model: Annotated[
        str, typer.Argument(help="A folder of checkpoints, a run of `isoscope train`, or a hub id.")
    ],
    revisions: Annotated[
        str | None, typer.Option(help="Revisions of a hub id, as in 'step{0,1000..143000:7000}'.")
    ] = None,
    pythia_schedule: Annotated[
        bool, typer.Option("--pythia-schedule", help="The 154 revisions that every Pythia has.")
    ] = False,
    all_revisions: Annotated[
        bool, typer.Option("--all-revisions", help="Every branch and tag of a hub id.")
    ] = False,
    what: Annotated[str, typer.Option(help="measure (over data), weights (without running it), or both.")] = (
        "measure"
    ),
    data: Annotated[
        str | None,
        typer.Option(
            help="As for `isoscope measure`. [default: embedded; of the lab's own, what was held out]"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many sequences; 0 for all.")] = 64,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens a sequence. [default: the model's limit, at most 512]")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences at a time.")] = 16,
    tokens: Annotated[str, typer.Option(help="auto, bytes or characters.")] = "auto",
    measures: Measures = None,
    layers: Annotated[str, typer.Option(help="Sites by glob, as for `isoscope measure`.")] = "*",
    heads: Annotated[bool, typer.Option("--heads", help="Add rows for every head of attention.")] = False,
    counterfactual: Annotated[
        bool, typer.Option(help="Read attention again without each head's mean query.")
    ] = True,
    length: Annotated[int, typer.Option(min=2, help="Of weights: positions that ρ(t) is told for.")] = 512,
    config: Annotated[
        str | None, typer.Option(help="The config of checkpoints that are single files.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, mps. [default: the GPU if there is one]")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64.")] = "float32",
    engine: Annotated[str, typer.Option(help="local: processes of this machine; ray: a cluster.")] = "local",
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="Units at once; 0: in this process. [default: 1; of ray, what fits]"),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that a unit computes with.")] = 1,
    ray_address: Annotated[
        str | None, typer.Option(help="A cluster that runs. [default: one is started here]")
    ] = None,
    gpus_per_task: Annotated[float, typer.Option(min=0.0, help="GPUs that a unit takes, on ray.")] = 0.0,
    disk_budget: Annotated[
        str, typer.Option(help="The most that downloaded checkpoints may take on the disk.")
    ] = "50GB",
    shard: Annotated[
        str, typer.Option(help="A share: i/n is every nth checkpoint, from the ith on, the first being 0.")
    ] = "0/1",
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop where a checkpoint is not what it should be.")
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False,
    seed: Seed = 0,
    memory: Memory = "2GB",
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure the checkpoints of a training, once it is known whether they are what they claim to be."""
    from isoscope.cli.screen import terminal as screen

    allowed, budget = parse_bytes(memory), parse_bytes(disk_budget)
    with screen.bar(f"looking for checkpoints of {model}"):  # before torch, which takes seconds to import
        from isoscope.cli.screen.finish import finish
        from isoscope.cli.screen.sweep import SweepView, show_integrity
        from isoscope.data.documents import refuse_missing
        from isoscope.errors import IsoscopeError, unknown_name
        from isoscope.models.source import DTYPES, place_for
        from isoscope.sweeps.fetch.shelf import Shelf
        from isoscope.sweeps.sweep import (
            measured,
            open_sweep,
            read_together,
            run_of,
            waiting,
        )
        from isoscope.sweeps.verify.integrity import examine
        from isoscope.sweeps.verify.verify import as_measured, mark_anew, prints_of
        from isoscope.sweeps.work.job import WHAT, Asked

        for kind, name, names in (
            ("what", what, WHAT),
            ("engine", engine, ("local", "ray")),
            ("dtype", dtype, DTYPES),
        ):
            if name not in names:
                raise unknown_name(kind, name, names)
        if engine == "local":
            place_for(device)
        if data is not None and what != "weights":
            refuse_missing(data)
        first, count = parse_share(shard, "--shard")
        pattern = _pattern(revisions, pythia_schedule, all_revisions)
        checkpoints = _checkpoints(model, pattern, config)
        opener, origin = _lab(model, data)
        asked = Asked(
            name=normpath(model) if Path(model).is_dir() else model,
            what=what,
            data=data or "embedded",
            limit=None if limit == 0 else limit,
            max_length=max_length,
            batch_size=batch_size,
            tokens=tokens,
            measures=None if (chosen := parse_names(measures)) is None else tuple(chosen),
            layers=layers,
            heads=heads,
            counterfactual=counterfactual,
            length=length,
            seed=seed,
            memory=allowed,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            threads=threads,
            opener=opener,
        )
        run = run_of(asked, origin)
    folder = open_sweep(run, out or default_out(asked.name, run.id))
    with screen.bar("fingerprints") as progress:
        prints = prints_of(folder, checkpoints, workers=max(1, workers or 1), progress=progress)
    known = as_measured(folder, checkpoints, prints)
    findings = examine(checkpoints, known)
    show_integrity(checkpoints, findings, listed=not all(each.sketch for each in known.values()))
    if strict and findings:
        wrong = len({finding.checkpoint for finding in findings})
        raise IsoscopeError(
            f"{wrong} of {len(checkpoints)} checkpoints are not what they should be; nothing was measured. "
            "Mend them, or leave --strict out."
        )
    _warn_of_many(workers or 1, threads, engine)
    mine = checkpoints[first::count]
    jobs = waiting(folder, asked, mine, prints, findings)
    with ExitStack() as open_:
        shelf = None
        if jobs and any(job.checkpoint.revision for job in jobs):
            plan = [job.checkpoint for job in jobs]
            shelf = open_.enter_context(
                Shelf(folder.path / "shelf", int(budget), plan, ahead=max(1, workers or 1))
            )
        slots = open_.enter_context(
            _slots(engine, workers, threads, len(jobs), address=ray_address, gpus=gpus_per_task)
        )
        view = open_.enter_context(
            SweepView(f"sweep of {model}", total=len(mine), there=len(mine) - len(jobs))
        )
        for event in measured(jobs, slots, shelf):
            view.tell(event)
    view.show_summary()
    if mine and not view.there and all(each.failed for each in view.outcomes):
        raise IsoscopeError(
            f"none of {len(mine)} checkpoints could be measured; mend what is said above, and run it again."
        )
    known = as_measured(folder, checkpoints, prints)
    now = examine(checkpoints, known)
    if now != findings:  # what was downloaded since tells more than the hub's hashes
        show_integrity(checkpoints, now, listed=not all(each.sketch for each in known.values()))
    mark_anew(folder, checkpoints, now)
    with screen.bar("reading all of it together"):
        read_together(folder)
    finish(folder, json=json)


def _warn_of_many(workers: int, threads: int, engine: str) -> None:
    """More threads than this machine has cores make all of them slower."""
    from os import cpu_count

    from isoscope.cli.screen import terminal as screen

    cores = cpu_count() or 1
    if engine == "local" and workers * threads > cores:
        wanted = f"{workers} workers of {threads} thread{'s' * (threads > 1)}"
        screen.warn([f"{wanted} share {cores} cores; fewer would be done sooner"])


def _pattern(revisions: str | None, pythia_schedule: bool, all_revisions: bool) -> str | None:
    """What is asked of a hub id: a pattern, empty for all of them; None where nothing is."""
    from isoscope.errors import IsoscopeError
    from isoscope.sweeps.find.patterns import PYTHIA_SCHEDULE

    if (revisions is not None) + pythia_schedule + all_revisions > 1:
        raise IsoscopeError(
            "--revisions, --pythia-schedule and --all-revisions exclude each other; give one of them."
        )
    return PYTHIA_SCHEDULE if pythia_schedule else "" if all_revisions else revisions


def _checkpoints(model: str, pattern: str | None, config: str | None) -> list[Checkpoint]:
    from dataclasses import replace

    from isoscope.errors import IsoscopeError
    from isoscope.models import zoo
    from isoscope.sweeps.find.checkpoints import in_folder
    from isoscope.sweeps.find.remote import of_zoo, revisions

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
    return revisions(model, pattern or None)


def _lab(model: str, data: str | None) -> tuple[Opener | None, dict[str, object]]:
    """What opens the checkpoints of a run of the lab, and which run that is."""
    from isoscope.lab.train.reopen import Reopen, training_of
    from isoscope.results.store import read_run

    training = training_of(model)
    if training is None:
        return None, {}
    return Reopen(str(training), data), {"training": read_run(training).run.id}


@contextmanager
def _slots(
    engine: str, workers: int | None, threads: int, jobs: int, *, address: str | None, gpus: float
) -> Iterator[list[Slot]]:
    """Room for as many units as are measured at once; none where all are measured in this process."""
    from isoscope.sweeps.work.local import processes
    from isoscope.sweeps.work.on_ray import ray_slots

    if engine == "ray" and jobs:
        with ray_slots(
            None if workers is None else max(1, workers), threads, address=address, gpus=gpus
        ) as found:
            yield found[:jobs]
    else:
        yield processes(min(jobs, 1 if workers is None else workers), threads)
