"""`isoscope sweep`: many checkpoints of one training, verified before they are measured."""

from __future__ import annotations

from typing import Annotated

import typer

from isoscope.cli.options import (
    BatchSize,
    Config,
    Counterfactual,
    Device,
    Dtype,
    Json,
    Limit,
    MaxLength,
    Measures,
    Memory,
    Out,
    Seed,
    Sites,
    Tokens,
    TrustRemoteCode,
    WithHeads,
    parse_bytes,
    parse_names,
    parse_share,
)


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
    limit: Limit = 64,
    max_length: MaxLength = None,
    batch_size: BatchSize = 16,
    tokens: Tokens = "auto",
    measures: Measures = None,
    layers: Sites = "*",
    heads: WithHeads = False,
    counterfactual: Counterfactual = True,
    length: Annotated[int, typer.Option(min=2, help="Of weights: positions that ρ(t) is told for.")] = 512,
    config: Config = None,
    device: Device = None,
    dtype: Dtype = "float32",
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
    trust_remote_code: TrustRemoteCode = False,
    seed: Seed = 0,
    memory: Memory = "2GB",
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure the checkpoints of a training, once it is known whether they are what they claim to be."""
    from isoscope.cli.screen import terminal

    allowed, budget, share = parse_bytes(memory), parse_bytes(disk_budget), parse_share(shard, "--shard")
    with terminal.bar(f"looking for checkpoints of {model}"):  # before torch, which takes seconds to import
        from isoscope.cli.screen.finish import finish
        from isoscope.cli.screen.sweep import WATCHING
        from isoscope.kinds.sweep.make import sweep as swept

    folder = swept(
        model,
        revisions=_pattern(revisions, pythia_schedule, all_revisions),
        what=what,
        data=data,
        limit=limit or None,
        max_length=max_length,
        batch_size=batch_size,
        tokens=tokens,
        measures=parse_names(measures),
        layers=layers,
        heads=heads,
        counterfactual=counterfactual,
        length=length,
        config=config,
        device=device,
        dtype=dtype,
        engine=engine,
        workers=workers,
        threads=threads,
        ray_address=ray_address,
        gpus_per_task=gpus_per_task,
        disk_budget=budget,
        shard=share,
        strict=strict,
        trust_remote_code=trust_remote_code,
        seed=seed,
        memory=allowed,
        out=out,
        watching=WATCHING,
    )
    finish(folder, json=json)


def _pattern(revisions: str | None, pythia_schedule: bool, all_revisions: bool) -> str | None:
    """What is asked of a hub id: a pattern, empty for all of them; None where nothing is."""
    from isoscope.errors import IsoscopeError
    from isoscope.sweeps.find.patterns import PYTHIA_SCHEDULE

    if (revisions is not None) + pythia_schedule + all_revisions > 1:
        raise IsoscopeError(
            "--revisions, --pythia-schedule and --all-revisions exclude each other; give one of them."
        )
    return PYTHIA_SCHEDULE if pythia_schedule else "" if all_revisions else revisions
