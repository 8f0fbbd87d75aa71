"""`isoscope sweep`: many checkpoints of one training, verified before they are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from isoscope.cli.options import AtLeast1, AtLeast2, Bytes, Limit, Names, Rate, Share, make_run, verb
from isoscope.errors import IsoscopeError

HELP = {
    "model": "A folder of checkpoints, a run of `isoscope train`, or a hub id.",
    "revisions": "Revisions of a hub id, as in 'step{0,1000..143000:7000}'.",
    "pythia_schedule": "The 154 revisions that every Pythia has.",
    "all_revisions": "Every branch and tag of a hub id.",
    "what": "measure (over data), weights (without running it), or both.",
    "data": "As for `isoscope measure`. [default: embedded; of the lab's own, what was held out]",
    "length": "Of weights: positions that ρ(t) is told for.",
    "engine": "local: processes of this machine; ray: a cluster.",
    "workers": "Units at once; 0: in this process. [default: 1; of ray, what fits]",
    "threads": "Threads that a unit computes with.",
    "ray_address": "A cluster that runs. [default: one is started here]",
    "gpus_per_task": "GPUs that a unit takes, on ray.",
    "disk_budget": "The most that downloaded checkpoints may take on the disk.",
    "shard": "A share: i/n is every nth checkpoint, from the ith on, the first being 0.",
    "strict": "Stop where a checkpoint is not what it should be.",
}


@verb(HELP)
def sweep(
    model: str, revisions: str | None = None, pythia_schedule: bool = False, all_revisions: bool = False,
    what: str = "measure", data: str | None = None, limit: Limit = 64, max_length: int | None = None,
    batch_size: int = 16, tokens: str = "auto",
    measures: Names = None, layers: str = "*", heads: bool = False, counterfactual: bool = True,
    length: AtLeast2 = 512, config: str | None = None, device: str | None = None, dtype: str = "float32",
    engine: str = "local", workers: Annotated[int | None, Option(min=0)] = None, threads: AtLeast1 = 1,
    ray_address: str | None = None, gpus_per_task: Rate = 0.0, disk_budget: Bytes = "50GB",
    shard: Share = "0/1", strict: bool = False, trust_remote_code: bool = False,
    seed: int = 0, memory: Bytes = "2GB", out: Path | None = None, json: bool = False,
) -> object:  # fmt: skip
    """Measure the checkpoints of a training, once it is known whether they are what they claim to be."""
    options = dict(locals())
    from isoscope.sweeps.find.patterns import PYTHIA_SCHEDULE

    if (revisions is not None) + options.pop("pythia_schedule") + options.pop("all_revisions") > 1:
        raise IsoscopeError(
            "--revisions, --pythia-schedule and --all-revisions exclude each other; give one of them."
        )
    options["revisions"] = PYTHIA_SCHEDULE if pythia_schedule else "" if all_revisions else revisions
    return make_run("isoscope.kinds.sweep.make:sweep", options, hears="watching")
