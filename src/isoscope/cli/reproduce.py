"""`isoscope reproduce`: a paper's claims, each tried and judged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import Device, Json, Out
from isoscope.results.place import default_out


def reproduce(
    paper: Annotated[str, typer.Argument(help="godey2024, machina2024 or bao2024.")],
    scale: Annotated[
        str,
        typer.Option(
            help="laptop (minutes, embedded data), gpu (larger models, real data) or full (public models)."
        ),
    ] = "laptop",
    offline: Annotated[bool, typer.Option("--offline", help="Ask no hub: what is not here is told.")] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="How many seeds; an interval takes three. [default: the scale's]"),
    ] = None,
    data: Annotated[
        str, typer.Option(help="text=FILE,images=FOLDER,sound=FOLDER; what is not given is embedded.")
    ] = "",
    claims: Annotated[
        str | None, typer.Option(help="Claims by name, separated by commas. [default: all]")
    ] = None,
    device: Device = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Trainings that are made at once. [default: the scale's]")
    ] = None,
    models: Annotated[
        Path | None, typer.Option(help="Where trained models are kept. [default: `models` beside the folder]")
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Try every claim of a paper and judge it by intervals; goes on where it was stopped."""
    if offline:
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"  # read when they are imported
    from isoscope.cli.options import parse_names
    from isoscope.cli.screen import terminal as screen
    from isoscope.cli.screen.finish import finish
    from isoscope.data.documents import refuse_missing
    from isoscope.lab.train.experiment import device_for
    from isoscope.papers.paper import chosen, left, make, run_of
    from isoscope.papers.scales import scale_of
    from isoscope.papers.table import paper_of
    from isoscope.papers.workshop import Workshop, parse_data
    from isoscope.results.store import open_run

    asked, size, given = paper_of(paper), scale_of(scale), parse_data(data)
    wanted = chosen(asked, parse_names(claims))
    for address in given.values():
        refuse_missing(address)
    where = device_for(device if device or scale != "laptop" else "cpu")
    room = Workshop(size, Path("models"), seeds or size.seeds, where, given, parallel or size.parallel)
    run = run_of(asked, room)
    path = out or default_out(f"{asked.name}-{scale}", run.id)
    folder = open_run(path, run)
    room = replace(room, models=models or path.parent / "models")
    waiting = [claim for claim in left(asked, folder) if claim in wanted]
    for claim in waiting:
        with screen.bar(claim.title) as progress:
            make([claim], replace(room, progress=progress), folder)
    finish(folder, json=json)
